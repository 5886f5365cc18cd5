package apiclients

import (
	"strings"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
	"palimpsest/web/clients"
)

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
