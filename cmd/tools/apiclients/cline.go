package apiclients

import (
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
)

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
