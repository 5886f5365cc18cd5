package apiclients

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
)

// copilot is GitHub's Copilot CLI in one of the three formats.
func copilot(format string) Client {
	skips := map[string]string{}
	if format == "chat" {
		skips["own compaction"] = "a session that goes on sends a member of messages that OpenAI does not know"
	}

	return Client{
		Name:    "Copilot, " + format,
		Package: "@github/copilot",
		known:   client.Copilot,
		skips:   skips,
		prepare: func(*session) error { return nil },
		say: func(s *session, text string, again bool) (command, error) {
			lines, err := s.snippet("GitHub Copilot CLI", "sh")
			if err != nil {
				return command{}, err
			}
			if format != "messages" {
				lines = strings.NewReplacer(`"anthropic"`, `"openai"`, `"claude-sonnet-5"`, `"gpt-5.5"`).Replace(lines)
			}
			environment := []string{"COPILOT_OFFLINE=true"}
			if format == "responses" {
				environment = append(environment, "COPILOT_PROVIDER_WIRE_API=responses")
			}
			if s.window > 0 {
				environment = append(environment, "COPILOT_PROVIDER_MAX_PROMPT_TOKENS="+strconv.Itoa(s.window))
			}
			arguments := []string{"-c", lines + ` "$@"`, "copilot", "-p", text, "--allow-all-tools", "--allow-all-paths"}
			if again {
				arguments = append(arguments, "--continue")
			}
			return command{program: "/bin/sh", arguments: arguments, environment: environment}, nil
		},
		shell: func(line string) providerdouble.Call {
			return call("bash", bashInput{Command: line, Description: "Look"})
		},
		errand: func(prompt string) providerdouble.Call {
			return call("task", struct {
				Name        string `json:"name"`
				Description string `json:"description"`
				Prompt      string `json:"prompt"`
				Kind        string `json:"agent_type"`
				Mode        string `json:"mode"`
			}{"look", "Look into it", prompt, "general-purpose", "sync"})
		},
		summarizes:  "Please create a detailed summary of the conversation so far",
		smallWindow: 60_000,
		fills:       26,
		manual:      "/compact",
	}
}

// cline is the command line of Cline, which speaks Chat Completions.
func cline() Client {
	return Client{
		Name:    "Cline",
		Package: "cline",
		known:   client.Cline,
		skips: map[string]string{
			"compaction asked for": "its command line has no /compact",
		},
		prepare: func(*session) error { return nil },
		say: func(s *session, text string, _ bool) (command, error) {
			login, err := s.snippet("Cline", "sh")
			if err != nil {
				return command{}, err
			}
			lines := "export CLINE_TELEMETRY_DISABLED=1\n" + login + "\n" + `cline --provider openai "$@"`
			arguments := []string{"-c", lines, "cline", text}
			if s.window == 0 {
				// Cline compacts by its own estimate of the prompt and ignores the reported usage.
				arguments = append(arguments, "--compaction", "off")
			}
			return command{program: "/bin/sh", arguments: arguments}, nil
		},
		shell: func(line string) providerdouble.Call {
			return call("run_commands", struct {
				Commands []string `json:"commands"`
			}{[]string{line}})
		},
		errand: func(prompt string) providerdouble.Call {
			return call("spawn_agent", struct {
				System string `json:"systemPrompt"`
				Task   string `json:"task"`
			}{"You run errands.", prompt})
		},
		summarizes:  "Summarize the provided coding session into a concise continuation note",
		smallWindow: 128_000, // its idea of the model's window
		fills:       44,
		once:        true,
	}
}

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
