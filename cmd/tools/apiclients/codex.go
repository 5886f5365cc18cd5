package apiclients

import (
	"encoding/json"
	"fmt"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
)

// codex is OpenAI's Codex, which speaks Responses.
func codex() Client {
	return Client{
		Name:    "Codex",
		Package: "@openai/codex",
		known:   client.Codex,
		skips: map[string]string{
			"compaction asked for": "codex exec has no /compact",
		},
		prepare: prepareCodex,
		say: func(s *session, text string, again bool) (command, error) {
			arguments := []string{"exec"}
			if again {
				arguments = append(arguments, "resume", "--last")
			}
			arguments = append(arguments, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", text)
			return s.program("codex", nil, arguments...), nil
		},
		shell: func(line string) providerdouble.Call {
			return call("exec_command", struct {
				Command string `json:"cmd"`
			}{line})
		},
		errand: func(prompt string) providerdouble.Call {
			return agentCall("spawn_agent", struct {
				Message string `json:"message"`
			}{prompt})
		},
		await: func(started string) providerdouble.Call {
			return agentCall("wait_agent", struct {
				Targets []string `json:"targets"`
			}{[]string{startedAgent(started)}})
		},
		recall: func(tool, wanted string) providerdouble.Call {
			made := recallInput(tool, tool, wanted)
			made.Namespace = "mcp__palimpsest"

			return made
		},
		summarizes:  "You are performing a CONTEXT CHECKPOINT COMPACTION",
		smallWindow: 30_000,
		fills:       14,
	}
}

func prepareCodex(s *session) error {
	config, err := s.snippet("Codex", "toml")
	if err != nil {
		return err
	}
	first := "model = \"gpt-5.5\"\ncheck_for_update_on_startup = false\n"
	if s.window > 0 {
		first += fmt.Sprintf("model_auto_compact_token_limit = %d\n", s.window)
	}
	if s.recalls {
		tools, err := s.snippet(recallGuide, "toml")
		if err != nil {
			return err
		}
		config += "\n\n" + tools
	}

	return s.write(".codex/config.toml", first+config+"\n\n[analytics]\nenabled = false\n")
}

// agentCall is a call of one of Codex's tools for subagents.
func agentCall[T any](name string, input T) providerdouble.Call {
	made := call(name, input)
	made.Namespace = "multi_agent_v1"

	return made
}

// startedAgent returns the id of a subagent from what spawn_agent returned.
func startedAgent(result string) string {
	var started struct {
		ID string `json:"agent_id"`
	}
	if err := json.Unmarshal([]byte(result), &started); err != nil {
		return "" // the call that waits for it tells what is wrong
	}

	return started.ID
}
