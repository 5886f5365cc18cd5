package apiclients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"palimpsest/web/clients"
)

// agentSDK is the Claude Agent SDK for JavaScript, which runs the Claude Code that comes with it.
func agentSDK() Client {
	made := claudeCodeOn("Claude Agent SDK", clients.Claude)
	made.Package = "@anthropic-ai/claude-agent-sdk"
	made.prepare = func(*session) error { return nil }
	made.say = func(s *session, text string, again bool) (command, error) {
		lines, err := s.snippet("Claude Agent SDK", "js")
		if err != nil {
			return command{}, err
		}
		const ping, options = `prompt: "ping"`, "options: { env }"
		if !strings.Contains(lines, ping) || !strings.Contains(lines, options) {
			return command{}, fmt.Errorf("the snippet for the Claude Agent SDK in docs/clients.md has no %s, %s", ping, options)
		}
		wanted, err := s.sdkOptions(again)
		if err != nil {
			return command{}, err
		}
		lines = strings.NewReplacer(ping, "prompt: process.argv[2]", options, "options: { env, ..."+wanted+" }").Replace(lines)
		// Inside the installation, so that node finds the SDK.
		folder, err := os.MkdirTemp(s.install, "agent-")
		if err != nil {
			return command{}, fmt.Errorf("folder of the agent: %w", err)
		}
		if err := writeBelow(folder, "agent.mjs", lines); err != nil {
			return command{}, err
		}
		environment := []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1"}
		if s.window > 0 {
			environment = append(environment, "CLAUDE_CODE_AUTO_COMPACT_WINDOW="+strconv.Itoa(s.window))
		}
		return command{program: "node", arguments: []string{filepath.Join(folder, "agent.mjs"), text}, environment: environment}, nil
	}

	return made
}

// sdkOptions are the options of a run with the Claude Agent SDK, as JSON.
func (s *session) sdkOptions(again bool) (string, error) {
	options := struct {
		recallTools

		Model    string   `json:"model"`
		Allowed  []string `json:"allowedTools"`
		Continue bool     `json:"continue"`
	}{Model: clients.Claude, Allowed: strings.Split(fewTools, ","), Continue: again}
	if s.recalls {
		options.recallTools = s.recallTools()
		options.Allowed = append(options.Allowed, "mcp__palimpsest__recall_search", "mcp__palimpsest__recall_get")
	}
	text, err := json.Marshal(options)
	if err != nil {
		return "", fmt.Errorf("options of the Claude Agent SDK: %w", err)
	}

	return string(text), nil
}
