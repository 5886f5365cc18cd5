package client

import (
	"net/http"
	"strings"
)

// The names of clients and libraries. All others are Other.
const (
	ClaudeCode   = "claude-code"
	Codex        = "codex"
	Pi           = "pi"
	OpenCode     = "opencode"
	Cline        = "cline"
	Roo          = "roo"
	Kilo         = "kilo"
	Continue     = "continue"
	Copilot      = "copilot" // GitHub's command line
	QwenCode     = "qwen-code"
	GeminiCLI    = "gemini-cli"
	Cursor       = "cursor"
	Droid        = "droid"
	LangChain    = "langchain"
	AISDK        = "ai-sdk"
	AnthropicSDK = "anthropic-sdk"
	OpenAISDK    = "openai-sdk"
	Curl         = "curl"
	Other        = "other"
)

// userAgents identify clients by the start of a word in their user agent. The first match counts, because
// agents also name the libraries they are built on.
var userAgents = [...]struct{ mark, name string }{
	{"claude-cli/", ClaudeCode},
	{"claude-code", ClaudeCode},
	{"codex", Codex},
	{"opencode/", OpenCode},
	{"pi-coding-agent", Pi}, // in earlier versions
	{"pi/", Pi},
	{"roocode", Roo},
	{"roo-code", Roo},
	{"kilo/", Kilo},
	{"kilo-code/", Kilo},
	{"cline", Cline},
	{"cursor", Cursor},
	{"qwencode/", QwenCode},
	{"geminicli", GeminiCLI},
	{"factory-cli/", Droid},
	{"langchain", LangChain},
	{"ai-sdk/", AISDK},
	{"anthropic/", AnthropicSDK},
	{"asyncanthropic/", AnthropicSDK},
	{"openai/", OpenAISDK},
	{"asyncopenai/", OpenAISDK},
	{"curl/", Curl},
}

// titles are the names of clients in X-Title.
var titles = [...]struct{ mark, name string }{
	{"roo code", Roo},
	{"kilo code", Kilo},
	{"cline", Cline},
	{"opencode", OpenCode},
}

// interactionType is the header in which Copilot names the purpose of a request. It is only set on the first
// request of an interaction.
const interactionType = "X-Interaction-Type"

// Name returns the client's name from a request's headers: its user agent, X-Title, Codex's originator and
// Copilot's kind of request. A client that only names the library it is built on is reported as the library;
// Class.Client is more exact if the system prompt names the client.
func Name(headers http.Header) string {
	name := ByUserAgent(headers.Get("User-Agent"))
	if isAgent(name) {
		return name
	}
	if strings.HasPrefix(headers.Get("Originator"), "codex") {
		return Codex
	}
	if strings.HasPrefix(headers.Get(interactionType), "conversation-") {
		return Copilot
	}
	title := strings.ToLower(headers.Get("X-Title"))
	for _, known := range titles {
		if strings.HasPrefix(title, known.mark) {
			return known.name
		}
	}
	return name
}

// ByUserAgent returns the name of the client with a user agent; Other if unknown.
func ByUserAgent(userAgent string) string {
	lower := strings.ToLower(userAgent)
	for _, known := range userAgents {
		if startsWord(lower, known.mark) {
			return known.name
		}
	}
	return Other
}

// startsWord reports whether a word of text starts with mark.
func startsWord(text, mark string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], mark)
		if i < 0 {
			return false
		}
		if i += from; i == 0 || !isLetter(text[i-1]) {
			return true
		}
		from = i + 1
	}
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// isAgent reports whether a name is that of a program that leads conversations, rather than a library or an
// unknown client.
func isAgent(name string) bool {
	switch name {
	case LangChain, AISDK, AnthropicSDK, OpenAISDK, Curl, Other, "":
		return false
	}
	return true
}
