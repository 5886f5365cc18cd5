package client_test

import (
	"net/http"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
)

func TestClientsAreKnownByTheirHeaders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header http.Header
		want   string
	}{
		"claude code":    {header("User-Agent", "claude-cli/2.1.329 (external, sdk-cli)"), client.ClaudeCode},
		"codex":          {header("User-Agent", "codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm"), client.Codex},
		"codex's word":   {header("User-Agent", "vscode/1.2", "Originator", "codex_vscode"), client.Codex},
		"opencode":       {header("User-Agent", "opencode/1.18.33 ai-sdk/provider-utils/4.0.46 runtime/bun/1.3.14"), client.OpenCode},
		"pi":             {header("User-Agent", "pi/1.6.0 (linux; node/v24.21.0; x64)"), client.Pi},
		"earlier pi":     {header("User-Agent", "pi-coding-agent/0.73.1"), client.Pi},
		"roo":            {header("User-Agent", "RooCode/3.52.0"), client.Roo},
		"roo's title":    {header("User-Agent", "OpenAI/JS 5.12.2", "X-Title", "Roo Code"), client.Roo},
		"kilo":           {header("User-Agent", "kilo/latest/7.7.9/cli ai-sdk/provider-utils/4.0.27 runtime/bun/1.3.14"), client.Kilo},
		"kilo's title":   {header("User-Agent", "OpenAI/JS 5.12.2", "X-Title", "Kilo Code"), client.Kilo},
		"cline's title":  {header("User-Agent", "OpenAI/JS 5.12.2", "X-Title", "Cline"), client.Cline},
		"droid":          {header("User-Agent", "factory-cli/0.215.0"), client.Droid},
		"langchain":      {header("User-Agent", "langchainjs-openai/1.0.0 ((node/v24.21.0; linux; x64))"), client.LangChain},
		"agent SDK":      {header("User-Agent", "claude-cli/2.1.332 (external, sdk-ts)"), client.ClaudeCode},
		"qwen code":      {header("User-Agent", "QwenCode/0.24.4 (linux; x64)"), client.QwenCode},
		"copilot":        {header("User-Agent", "Anthropic/JS 0.94.0", "X-Interaction-Type", "conversation-user"), client.Copilot},
		"cursor":         {header("User-Agent", "Cursor/2.1"), client.Cursor},
		"ai sdk":         {header("User-Agent", "ai/6.0.1 ai-sdk/openai/3.0.37 runtime/node.js/22"), client.AISDK},
		"anthropic js":   {header("User-Agent", "Anthropic/JS 1.11.0"), client.AnthropicSDK},
		"async python":   {header("User-Agent", "AsyncAnthropic/Python 0.80.0"), client.AnthropicSDK},
		"openai js":      {header("User-Agent", "OpenAI/JS 7.57.0"), client.OpenAISDK},
		"openai python":  {header("User-Agent", "AsyncOpenAI/Python 2.1.0"), client.OpenAISDK},
		"curl":           {header("User-Agent", "curl/8.5.0"), client.Curl},
		"part of a word": {header("User-Agent", "precursor/1 incline/2 api/3"), client.Other},
		"nobody":         {header(), client.Other},
	} {
		if got := client.Name(test.header); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestClientsBuiltOnALibraryAreKnownByTheirSystemPrompt(t *testing.T) {
	t.Parallel()
	codec := openaichat.Codec{}
	for system, want := range map[string]string{
		"You are a coding assistant running inside pi, a coding agent harness. Help users inspect files.": client.Pi,
		piSystem: client.Pi, clineSystem: client.Cline, rooSystem: client.Roo, copilotSystem: client.Copilot, qwenSystem: client.QwenCode,
		continueSystem: client.Continue, "You are Kilo Code, an expert code reviewer focused on high-confidence security.": client.Kilo,
		"You are a poet. You are Cline, an AI coding agent.": client.OpenAISDK,
	} {
		request := open(t, codec, body(t, codec, system, user("hello")))
		class := client.Classify(header("User-Agent", "OpenAI/JS 6.26.0"), "/v1/chat/completions", request)
		if class.Client != want || class.IsSide() || class.Marker.Found() {
			t.Errorf("%q: %+v", system, class)
		}
	}
}

// Qwen Code calls itself Claude Code where it speaks to Anthropic.
func TestQwenCodeIsKnownBehindTheNameOfClaudeCode(t *testing.T) {
	t.Parallel()
	codec := anthropic.Codec{}
	agent := header("User-Agent", "claude-cli/0.24.4 (external, cli)")
	for system, want := range map[string]string{
		qwenSystem: client.QwenCode, claudeSystem: client.ClaudeCode, "You are a poet.": client.ClaudeCode, clineSystem: client.ClaudeCode,
	} {
		request := open(t, codec, body(t, codec, system, user("hello")))
		if class := client.Classify(agent, "/v1/messages", request); class.Client != want {
			t.Errorf("%q: %+v", system, class)
		}
	}
}
