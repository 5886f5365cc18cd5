package apiclients

import (
	"fmt"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
)

// continueConfig is the part of ~/.continue/config.yaml that the docs and a run use.
type continueConfig struct {
	Name    string           `yaml:"name"`
	Version string           `yaml:"version"`
	Schema  string           `yaml:"schema"`
	Models  []continueModel  `yaml:"models"`
	Servers []continueServer `yaml:"mcpServers,omitempty"`
}

type continueModel struct {
	Name     string          `yaml:"name"`
	Provider string          `yaml:"provider"`
	Model    string          `yaml:"model"`
	URL      string          `yaml:"apiBase"`
	Key      string          `yaml:"apiKey"`
	Options  continueOptions `yaml:"defaultCompletionOptions,omitempty"`
}

type continueOptions struct {
	Window int `yaml:"contextLength,omitempty"`
}

type continueServer struct {
	Name    string `yaml:"name"`
	Type    string `yaml:"type"`
	URL     string `yaml:"url"`
	Options struct {
		Headers map[string]string `yaml:"headers"`
	} `yaml:"requestOptions"`
}

// continueCLI is the command line of Continue in one of its formats, with a model of the docs.
func continueCLI(format, model string) Client {
	skips := map[string]string{
		"compaction asked for": "without a terminal its /compact does not keep the summary",
		"subagent":             "without a terminal it has none",
	}
	if format == "messages" {
		skips["own compaction"] = "behind it the history begins with an answer, which Anthropic refuses"
		skips["429, then ok"] = "it ends at a 429 of Anthropic's"
	}

	return Client{
		Name:    "Continue, " + format,
		Package: "@continuedev/cli",
		known:   client.Continue,
		skips:   skips,
		prepare: func(s *session) error { return prepareContinue(s, model) },
		say: func(s *session, text string, again bool) (command, error) {
			arguments := []string{"-p", "--auto", "--config", filepath.Join(s.home, ".continue", "config.yaml")}
			if again {
				arguments = append(arguments, "--resume")
			}
			return s.program("cn", []string{"CONTINUE_CLI_ENABLE_TELEMETRY=0", "CONTINUE_TELEMETRY_ENABLED=0"}, append(arguments, text)...), nil
		},
		shell:       func(line string) providerdouble.Call { return call("Bash", bashInput{Command: line}) },
		recall:      func(tool, wanted string) providerdouble.Call { return recallInput(tool, tool, wanted) },
		summarizes:  "Please provide a concise summary of our conversation so far",
		smallWindow: 60_000,
		fills:       26,
	}
}

// prepareContinue writes the docs' models, the wanted one first, because Continue takes the first.
func prepareContinue(s *session, model string) error {
	text, err := s.snippet("Continue", "yaml")
	if err != nil {
		return err
	}
	if s.recalls {
		tools, err := s.snippet(recallGuide, "yaml")
		if err != nil {
			return err
		}
		text += "\n" + tools
	}
	var config continueConfig
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return fmt.Errorf("the snippet for Continue in docs/clients.md: %w", err)
	}
	at := slices.IndexFunc(config.Models, func(one continueModel) bool { return one.Name == model })
	if at < 0 {
		return fmt.Errorf("the snippet for Continue in docs/clients.md has no model %s", model)
	}
	main := config.Models[at]
	main.Options.Window = s.window
	config.Models = []continueModel{main}
	written, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("settings of Continue: %w", err)
	}
	if err := s.write(".continue/.env", "PALIMPSEST_KEY="+s.key+"\n"); err != nil {
		return err
	}

	return s.write(".continue/config.yaml", string(written))
}
