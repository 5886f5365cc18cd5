package apiclients

import (
	"encoding/json"
	"fmt"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
)

// codexPackage is Codex's package on npm.
const codexPackage = "@openai/codex"

// The namespaces of the tools for subagents, before GPT-6 and since.
const (
	agentTools     = "multi_agent_v1"
	agentToolsGPT6 = "collaboration"
)

// codexOnGPT6 is Codex on its newest models, which have a single tool: it runs JavaScript that calls all
// others.
func codexOnGPT6() Client {
	client := codex()
	client.Name = "Codex, GPT-6"
	client.prepare = func(s *session) error { return prepareCodex(s, "gpt-6-sol") }
	client.shell = func(line string) providerdouble.Call {
		return runScript("const ran = await tools.exec_command(%s); text(ran.output);", shellInput{line})
	}
	client.errand = func(prompt string) providerdouble.Call {
		return agentCall(agentToolsGPT6, "spawn_agent", struct {
			Name    string `json:"task_name"`
			Message string `json:"message"`
		}{"look", prompt})
	}
	client.await = func(string) providerdouble.Call {
		return agentCall(agentToolsGPT6, "wait_agent", struct {
			Milliseconds int `json:"timeout_ms"`
		}{10_000})
	}
	client.recall = func(tool, wanted string) providerdouble.Call {
		return runScript("text(await tools.mcp__palimpsest__"+tool+"(%s));", recallInput(tool, tool, wanted).Input)
	}

	return client
}

// codexBuiltIn is Codex with its own provider at the proxy's address.
func codexBuiltIn() Client {
	client := codex()
	client.Name = "Codex, openai_base_url"
	client.summarizes, client.compacted = `"compaction_trigger"`, `"type":"compaction"`
	say := client.say
	client.prepare = func(s *session) error {
		return prepareCodexWith(s, "gpt-5.5", "")
	}
	client.say = func(s *session, text string, again bool) (command, error) {
		lines, err := s.snippet("Codex", "sh", "openai_base_url")
		if err != nil {
			return command{}, err
		}
		said, err := say(s, text, again)
		said.program, said.arguments = "/bin/sh", append([]string{"-c", lines + ` "$@"`, "codex"}, said.arguments...)

		return said, err
	}

	return client
}

// runScript is a call of the JavaScript tool, with the input of one of its tools.
func runScript[T any](script string, input T) providerdouble.Call {
	made := call("exec", input)
	made.Input = fmt.Appendf(nil, script, made.Input)

	return made
}

// shellInput is the input of the shell tool.
type shellInput struct {
	Command string `json:"cmd"`
}

// codex is OpenAI's Codex, which speaks Responses.
func codex() Client {
	return Client{
		Name:    "Codex",
		Package: codexPackage,
		known:   client.Codex,
		skips: map[string]string{
			"compaction asked for": "codex exec has no /compact",
		},
		prepare: func(s *session) error { return prepareCodex(s, "gpt-5.5") },
		say: func(s *session, text string, again bool) (command, error) {
			arguments := []string{"exec"}
			if again {
				arguments = append(arguments, "resume", "--last")
			}
			arguments = append(arguments, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", text)
			return s.program("codex", nil, arguments...), nil
		},
		shell: func(line string) providerdouble.Call {
			return call("exec_command", shellInput{line})
		},
		errand: func(prompt string) providerdouble.Call {
			return agentCall(agentTools, "spawn_agent", struct {
				Message string `json:"message"`
			}{prompt})
		},
		await: func(started string) providerdouble.Call {
			return agentCall(agentTools, "wait_agent", struct {
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

func prepareCodex(s *session, model string) error {
	config, err := s.snippet("Codex", "toml")
	if err != nil {
		return err
	}

	return prepareCodexWith(s, model, config)
}

// prepareCodexWith writes a configuration of Codex's provider, and the settings of a run.
func prepareCodexWith(s *session, model, config string) error {
	first := fmt.Sprintf("model = %q\ncheck_for_update_on_startup = false\n", model)
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
func agentCall[T any](namespace, name string, input T) providerdouble.Call {
	made := call(name, input)
	made.Namespace = namespace

	return made
}

// startedAgent returns the id of a subagent from the result of spawn_agent.
func startedAgent(result string) string {
	var started struct {
		ID string `json:"agent_id"`
	}
	if err := json.Unmarshal([]byte(result), &started); err != nil {
		return "" // the call that waits for it reports the error
	}

	return started.ID
}
