package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// program is a client as the proxy sees it: its user agent and its format.
type program struct {
	userAgent string
	system    string // start of its system prompt; "" if absent
	session   string // header with its session's name; "" if absent
	header    http.Header
	format    format
}

// format writes requests and reads answers of one API.
type format interface {
	path() string
	// body writes a request. Messages are already in the format.
	body(request request) []byte
	// typed returns a person's text as one message.
	typed(text string) json.RawMessage
	// said returns an answer of the model as messages, with the given ids for the calls.
	said(text string, calls []call, ids []string) []json.RawMessage
	// results are the results of calls, as messages.
	results(calls []call, ids []string) []json.RawMessage
	// read returns an answer as messages, and the ids of its calls.
	read(answer []byte) (messages []json.RawMessage, ids []string, err error)
}

// request holds the inputs of a body.
type request struct {
	model    string
	system   string
	session  string
	tools    bool
	messages []json.RawMessage
}

// call is a tool call of the model with its result.
type call struct {
	name   string
	input  map[string]string
	result string
	failed bool
}

// encode encodes a value for which that cannot fail.
func encode(value any) json.RawMessage {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("demo: encode %T: %v", value, err))
	}
	return json.RawMessage(strings.TrimSuffix(out.String(), "\n"))
}

// tool is a tool of a client, with its required parameters.
type tool struct {
	name, description string
	needs             []string
}

func tools() []tool {
	return []tool{
		{"Read", "Reads a file and shows each line with its number.", []string{"file_path"}},
		{"Edit", "Replaces one string in a file with another.", []string{"file_path", "old_string", "new_string"}},
		{"Bash", "Runs a command in a shell and returns what it prints, errors included.", []string{"command"}},
		{"Grep", "Lists the lines that match a regular expression.", []string{"pattern", "path"}},
	}
}

// parameters is the schema of a tool's input.
func (t tool) parameters() json.RawMessage {
	type property struct {
		Type string `json:"type"`
	}
	properties := map[string]property{}
	for _, name := range t.needs {
		properties[name] = property{"string"}
	}
	return encode(struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}{"object", properties, t.needs})
}

// The programs of the demo's people.
const (
	claudeCode = "claude-code"
	codex      = "codex"
	pi         = "pi"
	openCode   = "opencode"
	cursor     = "cursor"
	library    = "anthropic-sdk"
)

func programs() map[string]program {
	const house = " You work in the repository of Northbeam, a shop for outdoor gear: Go services below internal, a web front in TypeScript below web. " +
		"Read before you change, run the tests of what you touched, and say in two sentences what you found."
	return map[string]program{
		claudeCode: {
			userAgent: "claude-cli/2.1.330 (external, cli)", session: "X-Claude-Code-Session-Id", format: anthropic{},
			system: "You are Claude Code, Anthropic's official CLI for Claude." + house,
			header: http.Header{"Anthropic-Version": {"2023-06-01"}},
		},
		codex: {
			userAgent: "codex_cli_rs/0.169.0 (Debian 13; x86_64)", session: "Session-Id", format: responses{},
			system: "You are a coding agent running in the Codex CLI, a terminal-based assistant." + house,
			header: http.Header{"Originator": {"codex_cli_rs"}},
		},
		pi: {
			userAgent: "pi/1.6.0 (darwin; node/v24.21.0; arm64)", format: anthropic{},
			system: "You are a coding assistant running inside pi, a coding agent harness." + house,
			header: http.Header{"Anthropic-Version": {"2023-06-01"}},
		},
		openCode: {
			userAgent: "opencode/1.18.33 ai-sdk/provider-utils/4.0.46", session: "X-Session-Affinity", format: chat{},
			system: "You are OpenCode, the best coding agent on the planet." + house,
		},
		cursor: {
			userAgent: "cursor/1.9.4", format: chat{}, system: "You are a pair programmer inside the editor Cursor." + house,
		},
		library: {
			userAgent: "Anthropic/Python 0.92.0", format: anthropic{}, header: http.Header{"Anthropic-Version": {"2023-06-01"}},
			system: "You answer customers of Northbeam, a shop for outdoor gear, in at most three sentences.",
		},
	}
}
