package apiclients

import (
	"strconv"
	"strings"

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
