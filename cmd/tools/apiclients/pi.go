package apiclients

import (
	"encoding/json"
	"fmt"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
)

// piModels is the part of ~/.pi/agent/models.json that the docs use.
type piModels struct {
	Providers map[string]piProvider `json:"providers"`
}

type piProvider struct {
	BaseURL string    `json:"baseUrl"`
	API     string    `json:"api"`
	Key     string    `json:"apiKey"`
	Models  []piModel `json:"models"`
}

type piModel struct {
	ID        string `json:"id"`
	Reasoning bool   `json:"reasoning,omitempty"`
	Window    int    `json:"contextWindow"`
	MaxOutput int    `json:"maxTokens"`
}

// piSettings is the part of ~/.pi/agent/settings.json that a run needs.
type piSettings struct {
	Compaction piCompaction `json:"compaction"`
}

type piCompaction struct {
	Enabled bool `json:"enabled"`
	Reserve int  `json:"reserveTokens"`
	Keep    int  `json:"keepRecentTokens"`
}

// piCompact is the command that has pi compact.
const piCompact = "/compact"

// pi is the pi coding agent in one of the three formats, with a provider of the docs.
func pi(format, provider string) Client {
	return Client{
		Name:    "pi, " + format,
		Package: "@earendil-works/pi-coding-agent",
		known:   client.Pi,
		skips: map[string]string{
			"subagent": "pi has none",
		},
		prepare: preparePi,
		say: func(s *session, text string, again bool) (command, error) {
			models, err := piModelsOf(s)
			if err != nil {
				return command{}, err
			}
			name := "palimpsest-" + provider
			if len(models.Providers[name].Models) == 0 {
				return command{}, fmt.Errorf("docs/clients.md sets up no model of %s for pi", name)
			}
			arguments := []string{"--mode", "json", "--provider", name, "--model", models.Providers[name].Models[0].ID}
			if again {
				arguments = append(arguments, "--continue")
			}
			environment := []string{"PI_OFFLINE=1", "PI_TELEMETRY=0", "PI_SKIP_VERSION_CHECK=1"}
			if text == piCompact {
				// Without a terminal, only this mode has the command.
				wanted := s.program("pi", environment, append(arguments[2:], "--mode", "rpc")...)
				wanted.input, wanted.until = `{"type":"compact"}`+"\n", `"command":"compact"`
				return wanted, nil
			}
			return s.program("pi", environment, append(arguments, text)...), nil
		},
		recall: func(tool, wanted string) providerdouble.Call {
			return recallInput(tool, "mcp__palimpsest__"+tool, wanted)
		},
		shell:       func(line string) providerdouble.Call { return call("bash", bashInput{Command: line}) },
		summarizes:  "You are a context summarization assistant.",
		smallWindow: 60_000,
		fills:       24,
		manual:      piCompact,
	}
}

// preparePi writes the docs' models, optionally with another window.
func preparePi(s *session) error {
	models, err := piModelsOf(s)
	if err != nil {
		return err
	}
	if s.window > 0 {
		for _, provider := range models.Providers {
			for i := range provider.Models {
				provider.Models[i].Window = s.window
			}
		}
	}
	if err := writeJSON(s, ".pi/agent/models.json", models); err != nil {
		return err
	}

	if s.recalls {
		tools, err := s.snippet(recallGuide, "jsonc")
		if err != nil {
			return err
		}
		if err := s.write(".pi/agent/mcp.json", tools); err != nil {
			return err
		}
	}

	return writeJSON(s, ".pi/agent/settings.json", piSettings{piCompaction{Enabled: true, Reserve: 16_384, Keep: 8_000}})
}

func piModelsOf(s *session) (piModels, error) {
	var models piModels
	text, err := s.snippet("pi", "json")
	if err != nil {
		return models, err
	}
	if err := json.Unmarshal([]byte(text), &models); err != nil {
		return models, fmt.Errorf("the snippet for pi in docs/clients.md: %w", err)
	}

	return models, nil
}
