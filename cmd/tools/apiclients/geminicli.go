package apiclients

import (
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
	"palimpsest/web/clients"
)

// geminiWindow is Gemini CLI's idea of a model's window, in tokens.
const geminiWindow = 1_048_576

// geminiHook is run by Gemini CLI after an answer: it asks the case's second question once.
const geminiHook = `mkdir asked 2>/dev/null || exit 0; echo "` + noteAsk + `" >&2; exit 2`

// geminiCLI is Gemini CLI on a model.
func geminiCLI(model string) Client {
	return Client{
		Name:    "Gemini CLI, " + model,
		Package: "@google/gemini-cli",
		known:   client.GeminiCLI,
		at:      gemini,
		prepare: prepareGeminiCLI,
		say: func(s *session, text string, _ bool) (command, error) {
			lines, err := s.snippet("Gemini CLI", "sh")
			if err != nil {
				return command{}, err
			}
			arguments := []string{"-c", lines + ` "$@"`, "gemini", "--yolo", "--skip-trust", "--model", model, "--prompt", text}
			return command{program: "/bin/sh", arguments: arguments}, nil
		},
		shell: func(line string) providerdouble.Call {
			return call("run_shell_command", bashInput{Command: line, Description: "Look"})
		},
		errand: func(prompt string) providerdouble.Call {
			return call("invoke_agent", struct {
				Agent  string `json:"agent_name"`
				Prompt string `json:"prompt"`
			}{"generalist", prompt})
		},
		reports: func(result string) providerdouble.Call {
			return call("complete_task", map[string]any{"result": map[string]string{"response": result}})
		},
		recall: func(tool, wanted string) providerdouble.Call {
			return recallInput(tool, "mcp_palimpsest_"+tool, wanted)
		},
		skips: map[string]string{
			"compaction asked for": "a session that it goes on with has each result of a tool twice, which Google refuses", // google-gemini/gemini-cli, issue 29365
		},
		masks:       true,
		asksItself:  true,
		smallWindow: 40_000,
		fills:       20,
		summarizes:  "You are a specialized system component responsible for distilling chat history",
	}
}

// geminiSettings is the part of settings.json that the docs and a run use.
type geminiSettings struct {
	Security json.RawMessage `json:"security"`
	Servers  json.RawMessage `json:"mcpServers,omitempty"`
	Privacy  struct {
		Statistics bool `json:"usageStatisticsEnabled"`
	} `json:"privacy"`
	General struct {
		Update bool `json:"enableAutoUpdate"`
	} `json:"general"`
	Model struct {
		Threshold float64 `json:"compressionThreshold,omitempty"`
	} `json:"model"`
	Hooks *geminiHooks `json:"hooks,omitempty"`
}

type geminiHooks struct {
	After []geminiHookGroup `json:"AfterAgent"`
}

type geminiHookGroup struct {
	Hooks []geminiCommand `json:"hooks"`
}

type geminiCommand struct {
	Type    string `json:"type"`
	Command string `json:"command"`
}

// prepareGeminiCLI writes the docs' settings. With a window, Gemini CLI compacts at it, before the second question.
func prepareGeminiCLI(s *session) error {
	text, err := s.snippet("Gemini CLI", "json")
	if err != nil {
		return err
	}
	var settings geminiSettings
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return fmt.Errorf("the snippet for Gemini CLI in docs/clients.md: %w", err)
	}
	if s.window > 0 {
		settings.Model.Threshold = float64(s.window) / geminiWindow
		settings.Hooks = &geminiHooks{[]geminiHookGroup{{[]geminiCommand{{"command", geminiHook}}}}}
	}
	if !s.recalls {
		settings.Servers = nil
	}

	return writeJSON(s, ".gemini/settings.json", settings)
}

// qwenCode is Qwen Code in one of the three formats.
func qwenCode(format string) Client {
	skips := map[string]string{}
	if format == "messages" {
		skips["own compaction"] = "behind it thinking stands in another message than the model's, which Anthropic refuses"
	}

	return Client{
		Name:    "Qwen Code, " + format,
		Package: "@qwen-code/qwen-code",
		known:   client.QwenCode,
		skips:   skips,
		prepare: prepareQwenCode,
		say: func(s *session, text string, again bool) (command, error) {
			lines, err := s.snippet("Qwen Code", "sh")
			if err != nil {
				return command{}, err
			}
			switch format {
			case "messages":
				lines = strings.NewReplacer("OPENAI_", "ANTHROPIC_", "/v1", "", clients.GPT, clients.Claude, "openai", "anthropic").Replace(lines)
			case "responses":
				lines += "-responses"
			}
			arguments := []string{"-c", lines + ` "$@"`, "qwen", "--yolo"}
			if again {
				arguments = append(arguments, "--continue")
			}
			return command{program: "/bin/sh", arguments: append(arguments, text)}, nil
		},
		shell: func(line string) providerdouble.Call {
			return call("run_shell_command", struct {
				Command     string `json:"command"`
				Description string `json:"description"`
				Background  bool   `json:"is_background"`
			}{line, "Look", false})
		},
		errand: func(prompt string) providerdouble.Call {
			return call("agent", errandInput{Description: "Look into it", Prompt: prompt, Kind: "general-purpose", Background: new(bool)})
		},
		summarizes:  "You are the component that summarizes a conversation when its context window is about to overflow.",
		smallWindow: 100_000,
		fills:       26,
		manual:      "/compress",
	}
}

// qwenSettings is the part of settings.json that a run needs.
type qwenSettings struct {
	Privacy struct {
		Statistics bool `json:"usageStatisticsEnabled"`
	} `json:"privacy"`
	General struct {
		Update bool `json:"enableAutoUpdate"`
	} `json:"general"`
	Model struct {
		Generation struct {
			Window int `json:"contextWindowSize,omitempty"`
		} `json:"generationConfig"`
	} `json:"model"`
}

func prepareQwenCode(s *session) error {
	var settings qwenSettings
	settings.Model.Generation.Window = s.window

	return writeJSON(s, ".qwen/settings.json", settings)
}
