package apiclients

import (
	"encoding/json"
	"fmt"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
)

// droidSettings is the part of ~/.factory/settings.json that the docs and a run use.
type droidSettings struct {
	Models []droidModel `json:"customModels"`
	Limit  int          `json:"compactionTokenLimit,omitempty"`
}

type droidModel struct {
	Model    string `json:"model"`
	Name     string `json:"displayName"`
	Provider string `json:"provider"`
	URL      string `json:"baseUrl"`
	Key      string `json:"apiKey"`
}

// droid is Factory's Droid in one of the three formats.
func droid(format string) Client {
	const npm = "@factory/cli-linux-x64"
	model := "custom:GPT-through-Palimpsest-1"
	if format == "messages" {
		model = "custom:Claude-through-Palimpsest-0"
	}

	return Client{
		Name:    "Droid, " + format,
		Package: npm,
		known:   client.Droid,
		skips: map[string]string{
			"compaction asked for": "`droid exec` takes one message",
		},
		prepare: func(s *session) error { return prepareDroid(s, format) },
		say: func(s *session, text string, _ bool) (command, error) {
			environment := []string{"FACTORY_AIRGAP_ENABLED=1", "FACTORY_DISABLE_KEYRING=1", "FACTORY_DROID_AUTO_UPDATE_ENABLED=0"}
			return command{
				program: s.inPackage(npm, "bin/droid"), environment: environment,
				arguments: []string{"exec", "--skip-permissions-unsafe", "-m", model, text},
			}, nil
		},
		shell: func(line string) providerdouble.Call {
			return call("Execute", struct {
				Summary string `json:"summary"`
				Command string `json:"command"`
				Reason  string `json:"riskLevelReason"` // subagents need it
				Risk    string `json:"riskLevel"`
			}{"Read the next file", line, "It only reads.", "low"})
		},
		errand: func(prompt string) providerdouble.Call {
			return call("Task", struct {
				Kind        string `json:"subagent_type"`
				Description string `json:"description"`
				Prompt      string `json:"prompt"`
				Await       bool   `json:"await"`
			}{"worker", "Look into it", prompt, true})
		},
		recall:      func(tool, wanted string) providerdouble.Call { return recallInput(tool, "palimpsest___"+tool, wanted) },
		summarizes:  "You excel at creating and maintaining summaries",
		smallWindow: 40_000,
		fills:       26,
		once:        true,
	}
}

// prepareDroid writes the docs' models, optionally with a limit at which Droid compacts.
func prepareDroid(s *session, format string) error {
	text, err := s.snippet("Droid", "json")
	if err != nil {
		return err
	}
	var settings droidSettings
	if err := json.Unmarshal([]byte(text), &settings); err != nil || len(settings.Models) != 2 {
		return fmt.Errorf("the snippet for Droid in docs/clients.md has not two models: %w", err)
	}
	if format == "chat" {
		settings.Models[1].Provider = "generic-chat-completion-api"
	}
	settings.Limit = s.window
	if s.recalls {
		tools, err := s.recallSettings()
		if err != nil {
			return err
		}
		if err := s.write(".factory/mcp.json", tools); err != nil {
			return err
		}
	}

	return writeJSON(s, ".factory/settings.json", settings)
}
