package apiclients

import (
	"slices"
	"strconv"

	"palimpsest/api/upstream/providertest"
)

// claudeCode is Claude Code, which speaks the Messages API.
func claudeCode() Client {
	return Client{
		Name:    "Claude Code",
		Package: "@anthropic-ai/claude-code",
		prepare: func(*session) error { return nil },
		say:     sayToClaudeCode,
		shell: func(line string) providertest.Call {
			return call("Bash", bashInput{Command: line, Description: "Look"})
		},
		errand: func(prompt string) providertest.Call {
			return call("Agent", errandInput{Description: "Look into it", Prompt: prompt, Kind: "general-purpose", Background: new(bool)})
		},
		recall: func(tool, wanted string) providertest.Call {
			if tool == "recall_get" {
				return call("mcp__palimpsest__"+tool, getInput{Pointer: wanted})
			}

			return call("mcp__palimpsest__"+tool, searchInput{Query: wanted, Path: partFile(2)})
		},
		summarises:  "Your task is to create a detailed summary of the conversation so far",
		smallWindow: 100_000,
		fills:       44,
		manual:      "/compact",
	}
}

// sayToClaudeCode starts Claude Code with the lines of the docs, of which the last
// is its name.
func sayToClaudeCode(s *session, text string, again bool) (command, error) {
	lines, err := s.snippet("Claude Code", "sh")
	if err != nil {
		return command{}, err
	}
	arguments := []string{
		"-c", "PATH=" + s.install + "/node_modules/.bin:$PATH\n" + lines + ` "$@"`, "claude",
		"-p", text, "--model", "claude-opus-5-5", "--allowedTools", "Bash,Read,Agent",
	}
	if s.recalls {
		settings, err := s.recallSettings()
		if err != nil {
			return command{}, err
		}
		arguments = append(arguments, "--mcp-config", settings, "--strict-mcp-config")
		allowed := slices.Index(arguments, "--allowedTools") + 1
		arguments[allowed] += ",mcp__palimpsest__recall_search,mcp__palimpsest__recall_get"
	}
	if again {
		arguments = append(arguments, "--continue")
	}
	environment := []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1"}
	if s.window > 0 {
		environment = append(environment, "CLAUDE_CODE_AUTO_COMPACT_WINDOW="+strconv.Itoa(s.window))
	}

	return command{program: "/bin/sh", arguments: arguments, environment: environment}, nil
}
