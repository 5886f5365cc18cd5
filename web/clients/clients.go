// Package clients describes how to set up each client for the proxy. The dashboard shows it with the address
// of its installation, README.md and docs/clients.md with that of a first start; tests compare them.
package clients

import "strings"

// The models in snippets for clients that do not list models themselves. A test reports when the catalog
// announces the end of one.
const (
	Claude = "claude-sonnet-5"
	GPT    = "gpt-5.6"
)

// Client is a program or a library that uses the proxy.
type Client struct {
	ID       string // lower-case words with hyphens, used in ids on a page
	Title    string
	Snippets []Snippet // one or more
	Hint     string
}

// Snippet is text to copy.
type Snippet struct {
	ID    string // within its client
	Label string // the text's destination: a file, a language, a field; "" if the text shows it
	Text  string
}

// All returns how to set up each client for the proxy at publicURL, which has no trailing slash. The API key
// is always in the environment variable PALIMPSEST_KEY.
func All(publicURL string) []Client {
	filled := strings.NewReplacer("{url}", publicURL, "{claude}", Claude, "{gpt}", GPT)
	var all []Client
	for _, client := range append(agents(), libraries()...) {
		client.Hint = filled.Replace(client.Hint)
		for i, snippet := range client.Snippets {
			client.Snippets[i].Text = filled.Replace(strings.Trim(snippet.Text, "\n"))
		}
		all = append(all, client)
	}
	return all
}

// Filled is All with an API key filled in, for the one page that shows it. If a client reads the key from the
// environment, the command that sets it comes first, because a key must not be in a project's files.
func Filled(publicURL, key string) []Client {
	all := All(publicURL)
	for i := range all {
		reads := false
		for j := range all[i].Snippets {
			snippet := &all[i].Snippets[j]
			snippet.Text = strings.ReplaceAll(snippet.Text, "$PALIMPSEST_KEY", key)
			reads = reads || strings.Contains(snippet.Text, "PALIMPSEST_KEY")
		}
		switch {
		case reads:
			export := Snippet{ID: "key", Label: "In the shell, first", Text: "export PALIMPSEST_KEY=\"" + key + "\""}
			all[i].Snippets = append([]Snippet{export}, all[i].Snippets...)
		case all[i].ID == "cursor":
			field := Snippet{ID: "key", Label: "Cursor Settings → Models → API Keys → OpenAI API Key", Text: key}
			all[i].Snippets = append([]Snippet{field}, all[i].Snippets...)
		}
	}
	return all
}

// agents are the programs for people.
func agents() []Client {
	return []Client{
		{
			ID: "connect", Title: "One command", Snippets: []Snippet{{ID: "shell", Text: `palimpsest connect claude-code --server {url} --key "$PALIMPSEST_KEY"`}},
			Hint: "Or codex, opencode, kilo, pi, cline, continue, qwen-code, gemini-cli, copilot, droid, crush, cursor, zed, aider, sdk, and --all for every client on this machine. It shows the changes to the client’s own files, asks, and writes them. palimpsest disconnect undoes them.",
		},
		{
			ID: "claude-code", Title: "Claude Code", Snippets: []Snippet{{ID: "shell", Text: claudeCode}, {ID: "foundry", Label: "Set up for Microsoft Foundry", Text: foundry}},
			Hint: "No /v1 at the end. With your own base URL Claude Code turns three features off, and three variables turn them on again: ENABLE_TOOL_SEARCH looks up tools of MCP servers when needed, instead of sending all of them in every prompt; CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY lists the workspace’s models in /model; CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING streams long arguments of tools as they are written. To keep these settings, put the variables under env in ~/.claude/settings.json, never in a project’s settings file. Check with /status.",
		},
		{
			ID: "codex", Title: "Codex", Snippets: []Snippet{{ID: "config", Text: codex}, {ID: "built-in", Label: "With Codex’s own provider", Text: codexBuiltIn}},
			Hint: "In your own config: a project’s config.toml cannot set model_provider. Codex reads the key from the environment variable PALIMPSEST_KEY. With Codex’s own provider OpenAI compacts the history, and the result is unreadable, even in the archive.",
		},
		{
			ID: "pi", Title: "pi", Snippets: []Snippet{{ID: "models", Label: "~/.pi/agent/models.json", Text: pi}},
			Hint: "Keep the provider that you need. apiKey prints the environment variable. Then start pi --provider palimpsest-anthropic --model {claude}, or choose with /model.",
		},
		{
			ID: "opencode", Title: "opencode", Snippets: []Snippet{{ID: "config", Label: "opencode.json in the project, or ~/.config/opencode/opencode.json", Text: openCode}},
			Hint: "Keep the providers that you need; the third one is for models that speak Chat Completions only. Then start opencode --model anthropic/{claude}.",
		},
		{
			ID: "droid", Title: "Droid", Snippets: []Snippet{{ID: "config", Label: "~/.factory/settings.json", Text: droid}},
			Hint: "Choose the model with /model. For a model that speaks Chat Completions only, the provider is generic-chat-completion-api, with /v1.",
		},
		{
			ID: "continue", Title: "Continue", Snippets: []Snippet{{ID: "config", Label: "~/.continue/config.yaml", Text: continueConfig}},
			Hint: "Put PALIMPSEST_KEY into ~/.continue/.env. With /v1 for both.",
		},
		{
			ID: "cursor", Title: "Cursor", Snippets: []Snippet{{ID: "base-url", Label: "Cursor Settings → Models → API Keys → Override OpenAI Base URL", Text: `{url}/v1`}},
			Hint: "Paste the API key into OpenAI API Key above it. Cursor sends such requests from its own servers, so use an address that they can reach: a public https address, not 127.0.0.1. Only models that Cursor lets you use with your own key go through it.",
		},
		{
			ID: "cline", Title: "Cline", Snippets: []Snippet{{ID: "shell", Text: `cline auth openai -k "$PALIMPSEST_KEY" -m {gpt} -b {url}/v1`}},
			Hint: "In the editor: Settings → API Provider → OpenAI Compatible, with the same base URL, the key and a model id.",
		},
		{
			ID: "copilot", Title: "GitHub Copilot CLI", Snippets: []Snippet{{ID: "shell", Text: copilot}},
			Hint: "For a model from OpenAI, set COPILOT_PROVIDER_TYPE to openai, COPILOT_PROVIDER_WIRE_API to responses, and COPILOT_MODEL to the model.",
		},
		{
			ID: "qwen-code", Title: "Qwen Code", Snippets: []Snippet{{ID: "shell", Text: qwenCode}},
			Hint: "For a model from Anthropic, set ANTHROPIC_BASE_URL, without /v1, ANTHROPIC_API_KEY and ANTHROPIC_MODEL in the same way, and start qwen --auth-type anthropic.",
		},
		{
			ID: "gemini-cli", Title: "Gemini CLI", Snippets: []Snippet{{ID: "shell", Text: geminiCLI}, {ID: "settings", Label: "~/.gemini/settings.json", Text: geminiSettings}},
			Hint: "The workspace needs a provider key of Google Gemini. Without the kind of sign-in in its settings, gemini -p refuses to start at an address of your own, and gemini asks: choose Use Gemini API Key. mcpServers are the recall tools; leave them out if you don’t want them.",
		},
	}
}

// libraries are the SDKs for programs.
func libraries() []Client {
	return []Client{
		{
			ID: "ai-sdk", Title: "AI SDK", Snippets: []Snippet{{ID: "js", Label: "JavaScript", Text: aiSDK}},
			Hint: "With /v1 for both.",
		},
		{
			ID: "agent-sdk", Title: "Claude Agent SDK", Snippets: []Snippet{
				{ID: "js", Label: "JavaScript", Text: agentSDKJS}, {ID: "python", Label: "Python", Text: agentSDKPython},
			},
			Hint: "It runs Claude Code, so its sessions are listed as Claude Code.",
		},
		{
			ID: "langchain", Title: "LangChain", Snippets: []Snippet{
				{ID: "js", Label: "JavaScript", Text: langChainJS}, {ID: "python", Label: "Python", Text: langChainPython},
			},
			Hint: "Without /v1 for Anthropic, with it for OpenAI. Name a conversation with the header X-Palimpsest-Session-Id, or let the proxy recognize it by its first messages.",
		},
		{
			ID: "anthropic-sdk", Title: "Anthropic SDK", Snippets: []Snippet{
				{ID: "js", Label: "JavaScript", Text: anthropicJS}, {ID: "python", Label: "Python", Text: anthropicPython}, {ID: "go", Label: "Go", Text: anthropicGo},
			},
			Hint: "No /v1: the SDK adds it.",
		},
		{
			ID: "openai-sdk", Title: "OpenAI SDK", Snippets: []Snippet{
				{ID: "js", Label: "JavaScript", Text: openAIJS}, {ID: "python", Label: "Python", Text: openAIPython}, {ID: "go", Label: "Go", Text: openAIGo},
			},
			Hint: "With /v1. Chat Completions and Responses both work. Name a conversation with the header X-Palimpsest-Session-Id, or let the proxy recognize it by its first messages.",
		},
		{
			ID: "curl", Title: "curl", Snippets: []Snippet{{ID: "shell", Text: curl}},
			Hint: "The response header X-Palimpsest-Tokens-Saved shows the savings.",
		},
		{
			ID: "recall", Title: "Recall tools (MCP)", Snippets: []Snippet{
				{ID: "claude-code", Label: "Claude Code", Text: recallClaudeCode}, {ID: "codex", Label: "Codex", Text: recallCodex},
				{ID: "opencode", Label: "opencode.json", Text: recallOpenCode},
				{ID: "pi", Label: "~/.pi/agent/mcp.json", Text: recallPi},
				{ID: "cursor", Label: "~/.cursor/mcp.json", Text: recallCursor},
				{ID: "droid", Label: "Droid", Text: recallDroid}, {ID: "qwen-code", Label: "Qwen Code", Text: recallQwen},
				{ID: "continue", Label: "~/.continue/config.yaml", Text: recallContinue},
			},
			Hint: "In addition to the client’s own set-up: the model gets recall_search and recall_get, which find and read the originals of shortened turns.",
		},
	}
}
