package apiclients

import (
	"encoding/json"
	"fmt"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
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
