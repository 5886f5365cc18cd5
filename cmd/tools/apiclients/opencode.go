package apiclients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
	"palimpsest/web/clients"
)

// opencodeConfig is the part of opencode.json that the docs and a run use.
type opencodeConfig struct {
	Schema     string                      `json:"$schema"`
	Providers  map[string]opencodeProvider `json:"provider"`
	AutoUpdate bool                        `json:"autoupdate"`
	Share      string                      `json:"share"`
	MCP        json.RawMessage             `json:"mcp,omitempty"`
}

type opencodeProvider struct {
	NPM     string                   `json:"npm,omitempty"`
	Name    string                   `json:"name,omitempty"`
	Options opencodeOptions          `json:"options"`
	Models  map[string]opencodeModel `json:"models,omitempty"`
}

type opencodeOptions struct {
	BaseURL string `json:"baseURL"`
	Key     string `json:"apiKey"`
}

type opencodeModel struct {
	Name  string         `json:"name,omitempty"`
	Limit *opencodeLimit `json:"limit,omitempty"`
}

type opencodeLimit struct {
	Context int `json:"context"`
	Input   int `json:"input,omitempty"`
	Output  int `json:"output"`
}

// kilo is the command line of Kilo Code, which is built from opencode, with Messages. It computes for so long that the
// other formats would take an hour each.
func kilo() Client {
	const npm = "@kilocode/cli-linux-x64"
	made := opencode("messages", "anthropic")
	made.Name, made.Package, made.known = "Kilo, messages", npm, client.Kilo
	made.skips = map[string]string{"compaction asked for": "kilo run has no /compact"}
	prepare, say := made.prepare, made.say
	made.prepare = func(s *session) error {
		if err := prepare(s); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(s.home, opencodeFile))
		if err != nil {
			return fmt.Errorf("settings of Kilo: %w", err)
		}
		return s.write(".config/kilo/kilo.json", string(text))
	}
	made.say = func(s *session, text string, again bool) (command, error) {
		said, err := say(s, text, again)
		said.program = s.inPackage(npm, "bin/kilo")
		for i, variable := range said.environment {
			said.environment[i] = strings.Replace(variable, "OPENCODE_", "KILO_", 1)
		}
		said.environment = append(said.environment, "KILO_TELEMETRY_LEVEL=off")
		return said, err
	}

	return made
}

// opencodeFile is opencode's configuration below the home.
const opencodeFile = ".config/opencode/opencode.json"

// opencode is opencode in one of the three formats, with a provider of the docs.
func opencode(format, provider string) Client {
	name, model := "palimpsest", clients.GPT
	switch provider {
	case "anthropic":
		name, model = "anthropic", clients.Claude
	case "openai":
		name = "openai"
	}

	return Client{
		Name:    "opencode, " + format,
		Package: "opencode-ai",
		known:   client.OpenCode,
		skips: map[string]string{
			"compaction asked for": "opencode run has no /compact",
		},
		prepare: func(s *session) error { return prepareOpencode(s, name, model) },
		say: func(s *session, text string, again bool) (command, error) {
			arguments := []string{"run", "--model", name + "/" + model, "--auto"}
			if again {
				arguments = append(arguments, "--continue")
			}
			environment := []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_SHARE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
			return s.program("opencode", environment, append(arguments, text)...), nil
		},
		shell: func(line string) providerdouble.Call {
			return call("bash", bashInput{Command: line, Description: "Look"})
		},
		errand: func(prompt string) providerdouble.Call {
			return call("task", errandInput{Description: "Look into it", Prompt: prompt, Kind: "general"})
		},
		recall: func(tool, wanted string) providerdouble.Call {
			return recallInput(tool, "palimpsest_"+tool, wanted)
		},
		summarizes:  "You are a context summarization agent.",
		smallWindow: 60_000,
		fills:       26,
	}
}

// prepareOpencode writes the docs' configuration, optionally with another window of its model.
func prepareOpencode(s *session, name, model string) error {
	text, err := s.snippet("opencode", "json")
	if err != nil {
		return err
	}
	var config opencodeConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return fmt.Errorf("the snippet for opencode in docs/clients.md: %w", err)
	}
	config.Share = "disabled"
	if s.recalls {
		if text, err = s.snippet(recallGuide, "json"); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			return fmt.Errorf("the snippet for opencode's recall tools in docs/clients.md: %w", err)
		}
	}
	if s.window > 0 {
		provider, found := config.Providers[name]
		if !found {
			return fmt.Errorf("the snippet for opencode in docs/clients.md has no provider %s", name)
		}
		provider.Models = map[string]opencodeModel{model: {Limit: &opencodeLimit{Context: s.window, Input: s.window, Output: 8_000}}}
		config.Providers[name] = provider
	}

	return writeJSON(s, opencodeFile, config)
}
