package apiclients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/client"
	"palimpsest/web/clients"
)

// claudeCodePackage is Claude Code on npm.
const claudeCodePackage = "@anthropic-ai/claude-code"

// The tools that the model may call. Naming a tool that the version does not offer by default makes it
// offer others too. Agent is the former Task.
const (
	fewTools   = "Bash,Read,Write,Agent"
	everyTools = "Bash,Read,Write,Edit,Grep,Glob,TodoWrite,Agent"
)

// claudeCode is Claude Code, which uses the Messages API, on the docs' model.
func claudeCode() Client { return claudeCodeOn("Claude Code", "claude-opus-5-5") }

// claudeCodeOnOthers is Claude Code on one model of each further family that it treats differently, the
// newest first. The newest gets a system message after every turn, and older ones get their thinking back
// in other ways. It runs only the case past the window.
func claudeCodeOnOthers() []Client {
	var clients []Client
	for _, model := range []string{"claude-sonnet-5", "claude-opus-4-8", "claude-sonnet-4-6", "claude-sonnet-4-5"} {
		client := claudeCodeOn("Claude Code, "+model, model)
		client.skips = map[string]string{}
		for _, one := range Cases() {
			if one.window < windowSize {
				client.skips[one.Name] = "the model makes no difference"
			}
		}
		clients = append(clients, client)
	}
	return clients
}

// ownCredential is the credential that a client brings for the provider.
const ownCredential = "sk-of-the-person"

// claudeCodeWithItsOwn is Claude Code with its own credential for the provider.
func claudeCodeWithItsOwn() Client {
	made := claudeCodeOn("Claude Code, own credential", "claude-opus-5-5")
	made.brings, made.skips = true, skipsOfClaudeCode("the credential makes no difference")

	return made
}

// claudeCodeInClouds is Claude Code in the mode of each cloud, which then speaks the cloud's protocol.
func claudeCodeInClouds() []Client {
	var clients []Client
	for _, one := range []struct {
		name, model string
		at          openPlatform
		snippet     []string // section of the docs, and a mark of the snippet
	}{
		{"Amazon Bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", bedrock, []string{"Claude Code with Amazon Bedrock", "CLAUDE_CODE_USE_BEDROCK"}},
		{"Google Cloud", "claude-sonnet-4-5@20250929", googleCloud, []string{"Claude Code in a cloud", "CLAUDE_CODE_USE_VERTEX"}},
		{"Foundry", "claude-opus-5-5", foundry, []string{"Claude Code in a cloud", "CLAUDE_CODE_USE_FOUNDRY"}},
	} {
		made := claudeCodeOn("Claude Code, "+one.name, one.model, one.snippet...)
		made.at, made.skips = one.at, skipsOfClaudeCode("the cloud makes no difference")
		clients = append(clients, made)
	}

	return clients
}

// skipsOfClaudeCode skips the cases that only Claude Code has.
func skipsOfClaudeCode(reason string) map[string]string {
	skips := map[string]string{}
	for _, one := range Cases() {
		if one.only == claudeCodePackage {
			skips[one.Name] = reason
		}
	}

	return skips
}

// claudeCodeOn is Claude Code on a model, set up with a snippet of the docs: a section, and a mark of the snippet.
func claudeCodeOn(name, model string, snippet ...string) Client {
	if snippet == nil {
		snippet = []string{"Claude Code", "ANTHROPIC_BASE_URL"}
	}

	return Client{
		Name:    name,
		Package: claudeCodePackage,
		known:   client.ClaudeCode,
		prepare: prepareTerminal,
		say: func(s *session, text string, again bool) (command, error) {
			return sayToClaudeCode(s, snippet, model, text, again)
		},
		shell: func(line string) providerdouble.Call {
			return call("Bash", bashInput{Command: line, Description: "Look"})
		},
		errand: func(prompt string) providerdouble.Call {
			return call("Agent", errandInput{Description: "Look into it", Prompt: prompt, Kind: "general-purpose", Background: new(bool)})
		},
		recall: func(tool, wanted string) providerdouble.Call {
			return recallInput(tool, "mcp__palimpsest__"+tool, wanted)
		},
		summarizes:  "Your task is to create a detailed summary of the conversation so far",
		smallWindow: 100_000,
		fills:       44,
		manual:      "/compact",
	}
}

// sayToClaudeCode starts Claude Code with the lines of the docs, whose last line is its name.
func sayToClaudeCode(s *session, snippet []string, model, text string, again bool) (command, error) {
	lines, err := s.snippet(snippet[0], "sh", snippet[1:]...)
	if err != nil {
		return command{}, err
	}
	if s.provider != "" {
		lines = strings.Replace(lines, "$PALIMPSEST_KEY", ownCredential, 1)
		lines = "export ANTHROPIC_CUSTOM_HEADERS=\"X-Palimpsest-Key: $PALIMPSEST_KEY\nX-Palimpsest-Base-Url: " + s.provider + "\"\n" + lines
	}
	atTerminal := s.terminal && again
	arguments := []string{
		"-c", lines + ` "$@"`, "claude",
		text, "--model", model, "--allowedTools", fewTools,
	}
	if !atTerminal {
		arguments = append(arguments, "-p")
	}
	environment := []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1"}
	if s.tools {
		arguments[slices.Index(arguments, fewTools)] = everyTools
		arguments = append(arguments, "--tools", everyTools)
		environment = append(environment, "CLAUDE_CODE_ENABLE_TASKS=0") // they replace TodoWrite
	}
	if atTerminal {
		// Clients set up earlier do not send a request's purpose in headers.
		arguments[1] = strings.Replace(arguments[1], "export CLAUDE_CODE_GATEWAY_HINT_HEADERS=1\n", "", 1)
		environment = append(environment, "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION=1") // the default only if it reads the provider's feature switches
	}
	if s.threads {
		environment = append(environment, "CLAUDE_CODE_TETHER_LIVE=1") // the default only at the provider's own address
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
	switch {
	case atTerminal:
		arguments = append(arguments, "--resume", terminalSession)
	case s.terminal:
		arguments = append(arguments, "--session-id", terminalSession)
	case again:
		arguments = append(arguments, "--continue")
	}
	if s.window > 0 {
		environment = append(environment, "CLAUDE_CODE_AUTO_COMPACT_WINDOW="+strconv.Itoa(s.window))
	}

	return command{program: "/bin/sh", arguments: arguments, environment: environment, terminal: atTerminal, until: suggestedWord}, nil
}

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
