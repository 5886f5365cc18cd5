package apiclients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
)

// connectedName is the case in which the program itself sets up the client.
const connectedName = "connected"

// connectedCase is the case in which palimpsest connect sets the client up, the client works, and
// palimpsest disconnect restores its files.
func connectedCase() Case {
	return Case{Name: connectedName, connects: true, says: says(noteAsk), play: readNote, judge: workedConnected}
}

// connection describes how the program sets a client up, and how to start the client then.
type connection struct {
	id        string   // of palimpsest connect for the client
	program   []string // and the arguments before the prompt
	after     []string // the arguments behind it
	runs      bool     // the client reads only its environment, so palimpsest run starts it
	variables []string
}

// connections are the connections of clients, by the rows' names. They override the shell's exports for
// Anthropic's own API.
func connections() map[string]connection {
	return map[string]connection{
		"Claude Code": {
			id: "claude-code", program: []string{"claude", "-p"}, after: []string{"--model", "claude-opus-5-5", "--allowedTools", fewTools},
			variables: []string{"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "ANTHROPIC_API_KEY=sk-ant-of-the-shell"},
		},
		"Codex": {id: "codex", program: []string{"codex", "exec", "--model", "gpt-5.5", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}},
		"opencode, messages": {
			id: "opencode", program: []string{"opencode", "run", "--model", "anthropic/claude-sonnet-5", "--auto"},
			variables: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_SHARE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
		},
		"pi, messages": {
			id: "pi", program: []string{"pi", "--mode", "json", "--provider", "palimpsest-anthropic", "--model", "claude-sonnet-5"},
			variables: []string{"PI_OFFLINE=1", "PI_TELEMETRY=0", "PI_SKIP_VERSION_CHECK=1"},
		},
		"Cline":                      {id: "cline", program: []string{"cline"}, after: []string{"--compaction", "off"}, variables: []string{"CLINE_TELEMETRY_DISABLED=1"}},
		"Copilot, messages":          {id: "copilot", runs: true, program: []string{"copilot", "-p"}, after: []string{"--allow-all-tools", "--allow-all-paths"}, variables: []string{"COPILOT_OFFLINE=true"}},
		"Gemini CLI, gemini-2.5-pro": {id: "gemini-cli", program: []string{"gemini", "--yolo", "--skip-trust", "--model", "gemini-2.5-pro", "--prompt"}},
		"Qwen Code, messages":        {id: "qwen-code", program: []string{"qwen", "--yolo"}, variables: []string{"ANTHROPIC_API_KEY=sk-ant-of-the-shell"}},
	}
}

// connect has the program set up the client in the session's home, and returns the written files.
func (s *session) connect(ctx context.Context, one connection) ([]string, error) {
	said, err := s.palimpsest(ctx, "connect", one.id, "--server", s.url, "--key", s.key, "--yes", "--json")
	if err != nil {
		return nil, err
	}
	var results []struct {
		Done  bool `json:"done"`
		Files []struct {
			Path string `json:"path"`
		} `json:"files"`
	}
	if err := json.Unmarshal([]byte(said), &results); err != nil || len(results) != 1 || !results[0].Done {
		return nil, fmt.Errorf("connect %s printed %s (%w)", one.id, said, err)
	}
	var files []string
	for _, file := range results[0].Files {
		files = append(files, file.Path)
	}
	return files, nil
}

// palimpsest runs the program in the session's home.
func (s *session) palimpsest(ctx context.Context, arguments ...string) (string, error) {
	output := command{program: s.binary, arguments: arguments}.run(ctx, s)
	if output.Err != nil {
		return "", fmt.Errorf("palimpsest %s: %w: %s", arguments[0], output.Err, output.Text)
	}
	return output.Text, nil
}

// workConnected runs the case in a connected client, and then disconnects the client.
func (t *Trial) workConnected(ctx context.Context, s *session) error {
	one := connections()[t.Client.Name]
	files, err := s.connect(ctx, one)
	if err != nil {
		return err
	}
	for _, text := range t.Case.says(t.Client) {
		arguments := slices.Concat(one.program[1:], []string{text}, one.after)
		wanted := s.program(one.program[0], one.variables, arguments...)
		if one.runs {
			wanted = command{program: s.binary, environment: one.variables, arguments: append([]string{"run", "--server", s.url, "--key", s.key, one.id, "--"}, arguments...)}
		}
		t.Outputs = append(t.Outputs, wanted.run(ctx, s))
	}
	if _, err := s.palimpsest(ctx, "disconnect", one.id); err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil && (strings.Contains(string(content), s.url) || strings.Contains(string(content), "palimpsest")) {
			t.left = append(t.left, fmt.Sprintf("%s after disconnect:\n%s", file, content))
		}
	}
	return nil
}

// workedConnected requires an answer from a client that the program set up, and no leftovers of the setup.
func workedConnected(t *Trial) (string, error) {
	if len(t.left) > 0 {
		return "", errors.New(strings.Join(t.left, "\n"))
	}
	if t.Client.Package == claudeCodePackage {
		if err := t.turnedOn(); err != nil {
			return "", err
		}
	}
	return toldTheWord(t)
}

// turnedOn requires that the features are on which Claude Code turns off behind a custom base URL.
func (t *Trial) turnedOn() error {
	var listed, deferred, sentAtOnce bool
	for _, exchange := range t.Exchanges {
		listed = listed || exchange.Method == http.MethodGet && strings.HasPrefix(exchange.Path, "/v1/models") && exchange.Status == http.StatusOK
		if exchange.isGeneration() {
			deferred = deferred || bytes.Contains(exchange.Body, []byte(`"ToolSearch"`))
			sentAtOnce = sentAtOnce || bytes.Contains(exchange.Body, []byte(`"name":"mcp__palimpsest__`))
		}
	}
	if !listed || !deferred || sentAtOnce {
		return fmt.Errorf("the workspace's models were asked for: %v, tools are looked up: %v, tools of MCP servers stand in prompts: %v", listed, deferred, sentAtOnce)
	}
	return nil
}

// localAddress is the proxy's address in docs/clients.md.
const localAddress = "http://127.0.0.1:8080"

// Guide holds the snippets of the docs, by section and language, in their order.
type Guide map[string]map[string][]string

// GuidePages are the pages of the docs with the snippets.
func GuidePages() []string { return []string{"clients.md", "providers.md"} }

// ReadGuide finds the snippets in the texts of pages: the blocks of each language below each heading of the second
// or third level.
func ReadGuide(pages ...string) Guide {
	guide := Guide{}
	heading := regexp.MustCompile("(?m)^###? ")
	block := regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)\n```$")
	for _, section := range heading.Split(strings.Join(pages, "\n"), -1) {
		title, rest, _ := strings.Cut(section, "\n")
		for _, match := range block.FindAllStringSubmatch(rest, -1) {
			if guide[title] == nil {
				guide[title] = map[string][]string{}
			}
			guide[title][match[1]] = append(guide[title][match[1]], match[2])
		}
	}

	return guide
}

// snippet returns the first snippet that holds a text, with the address of the session's proxy.
func (s *session) snippet(section, language string, holding ...string) (string, error) {
	mark := strings.Join(holding, "")
	snippets := s.guide[section][language]
	at := slices.IndexFunc(snippets, func(text string) bool { return strings.Contains(text, mark) })
	if at < 0 {
		return "", fmt.Errorf("the docs have no %s snippet for %s %s", language, section, mark)
	}
	text := snippets[at]
	if !strings.Contains(text, localAddress) {
		return "", fmt.Errorf("the %s snippet for %s %s in the docs does not name %s", language, section, mark, localAddress)
	}

	return strings.ReplaceAll(text, localAddress, s.url), nil
}
