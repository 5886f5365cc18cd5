package clients_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"palimpsest/pipeline/tokens"
	"palimpsest/web/clients"
)

const address = "https://llm.example.com"

// text returns one snippet.
func text(t *testing.T, client, snippet string) string {
	t.Helper()
	for _, known := range clients.All(address) {
		for _, one := range known.Snippets {
			if known.ID == client && one.ID == snippet {
				return one.Text
			}
		}
	}
	t.Fatalf("%s has no snippet %s", client, snippet)
	return ""
}

func TestEveryClientIsSetUpForTheAddress(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, client := range clients.All(address) {
		if client.Title == "" || client.Hint == "" || len(client.Snippets) == 0 {
			t.Errorf("%s lacks something: %+v", client.ID, client)
		}
		for _, snippet := range client.Snippets {
			id := client.ID + "-" + snippet.ID
			if seen[id] || !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(id) {
				t.Errorf("the id %q", id)
			}
			seen[id] = true
			if !strings.Contains(snippet.Text, address) || strings.Contains(snippet.Text, "{url}") || strings.TrimSpace(snippet.Text) != snippet.Text {
				t.Errorf("%s:\n%s", id, snippet.Text)
			}
			// Cursor alone has a field to paste the key into.
			if !strings.Contains(snippet.Text, "PALIMPSEST_KEY") && client.ID != "cursor" {
				t.Errorf("%s names no key:\n%s", id, snippet.Text)
			}
		}
	}
	if other := clients.All("http://127.0.0.1:1"); strings.Contains(other[0].Snippets[0].Text, address) {
		t.Error("an address outlives its call")
	}
}

// What section 3 of wire.md says of each client's base URL and key.
func TestBaseURLHasItsVersionWhereTheClientDoesNotAddIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ client, snippet, line string }{
		{"claude-code", "shell", `export ANTHROPIC_BASE_URL="` + address + `"`},
		{"claude-code", "shell", "unset ANTHROPIC_API_KEY"},
		{"claude-code", "shell", "export CLAUDE_CODE_GATEWAY_HINT_HEADERS=1"},
		{"claude-code", "shell", "export CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY=1"},
		{"claude-code", "shell", "export CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING=1"},
		{"claude-code", "shell", "export ENABLE_TOOL_SEARCH=true"},
		{"claude-code", "foundry", `export ANTHROPIC_FOUNDRY_BASE_URL="` + address + `/anthropic"`},
		{"droid", "config", `      "baseUrl": "` + address + `",`},
		{"continue", "config", "    apiBase: " + address + "/v1"},
		{"langchain", "js", `  anthropicApiUrl: "` + address + `",`},
		{"agent-sdk", "js", `  ANTHROPIC_BASE_URL: "` + address + `",`},
		{"codex", "config", `base_url = "` + address + `/v1"`},
		{"codex", "config", `wire_api = "responses"`},
		{"cursor", "base-url", address + "/v1"},
		{"cline", "shell", `cline auth openai -k "$PALIMPSEST_KEY" -m ` + clients.GPT + ` -b ` + address + "/v1"},
		{"copilot", "shell", `export COPILOT_PROVIDER_BASE_URL="` + address + `"`},
		{"qwen-code", "shell", `export OPENAI_BASE_URL="` + address + `/v1"`},
		{"ai-sdk", "js", `  baseURL: "` + address + `/v1",`},
		{"anthropic-sdk", "js", `  baseURL: "` + address + `",`},
		{"anthropic-sdk", "python", `    base_url="` + address + `",`},
		{"anthropic-sdk", "go", `	option.WithBaseURL("` + address + `"),`},
		{"openai-sdk", "js", `  baseURL: "` + address + `/v1",`},
		{"openai-sdk", "python", `    base_url="` + address + `/v1",`},
		{"openai-sdk", "go", `	option.WithBaseURL("` + address + `/v1"),`},
		{"curl", "shell", "curl " + address + `/v1/messages \`},
	} {
		if found := text(t, test.client, test.snippet); !strings.Contains("\n"+found+"\n", "\n"+test.line+"\n") {
			t.Errorf("%s lacks the line %q:\n%s", test.client, test.line, found)
		}
	}
}

func TestConfigsOfPiAndOpencodeAreJSONWithABaseURLForEachProvider(t *testing.T) {
	t.Parallel()
	var pi struct {
		Providers map[string]struct {
			BaseURL string     `json:"baseUrl"`
			API     string     `json:"api"`
			APIKey  string     `json:"apiKey"`
			Models  []struct{} `json:"models"`
		} `json:"providers"`
	}
	if err := json.Unmarshal([]byte(text(t, "pi", "models")), &pi); err != nil {
		t.Fatal(err)
	}
	for name, provider := range pi.Providers {
		want := address + "/v1"
		if provider.API == "anthropic-messages" {
			want = address // pi adds the rest
		}
		if provider.BaseURL != want || provider.APIKey != "!printenv PALIMPSEST_KEY" || len(provider.Models) == 0 {
			t.Errorf("%s: %+v", name, provider)
		}
	}
	var openCode struct {
		Provider map[string]struct {
			Options struct {
				BaseURL string `json:"baseURL"`
				APIKey  string `json:"apiKey"`
			} `json:"options"`
		} `json:"provider"`
	}
	if err := json.Unmarshal([]byte(text(t, "opencode", "config")), &openCode); err != nil {
		t.Fatal(err)
	}
	for name, provider := range openCode.Provider {
		if provider.Options.BaseURL != address+"/v1" || provider.Options.APIKey != "{env:PALIMPSEST_KEY}" {
			t.Errorf("%s: %+v", name, provider)
		}
	}
	if len(pi.Providers) != 3 || len(openCode.Provider) != 3 {
		t.Errorf("%d and %d providers", len(pi.Providers), len(openCode.Provider))
	}
}

func TestSnippetsCanBeRead(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"anthropic-sdk", "openai-sdk"} {
		imports, body, _ := strings.Cut(text(t, client, "go"), "\n\nclient ")
		program := "package main\n\n" + imports + "\n\nfunc main() {\nclient " + body + "\n_ = client\n}\n"
		if _, err := parser.ParseFile(token.NewFileSet(), client+".go", program, parser.AllErrors); err != nil {
			t.Error(err)
		}
	}
	for _, client := range []string{"connect", "claude-code", "cline", "copilot", "qwen-code", "curl"} {
		if said, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", text(t, client, "shell")).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", client, err, said)
		}
	}
	_, quoted, _ := strings.Cut(text(t, "curl", "shell"), "-d '")
	if body := strings.TrimSuffix(quoted, "'"); !json.Valid([]byte(body)) {
		t.Errorf("curl sends %s", body)
	}
}

// A snippet must not name a model that its maker is about to end, or one that no one knows.
func TestSnippetsNameModelsThatStay(t *testing.T) {
	t.Parallel()
	catalog, err := tokens.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\b(?:claude|gpt|gemini)-(?:[a-z]+-)?\d(?:[a-z0-9.-]*[a-z0-9])?`)
	count := 0
	for _, client := range clients.All(address) {
		texts := []string{client.Hint}
		for _, snippet := range client.Snippets {
			texts = append(texts, snippet.Text)
		}
		for _, name := range names.FindAllString(strings.Join(texts, "\n"), -1) {
			count++
			if !catalog.Lookup(name).Known {
				t.Errorf("%s: the catalog does not know %s", client.ID, name)
			}
			if ending, ends := catalog.Ending(name); ends {
				t.Errorf("%s: %s ends on %v; its maker recommends %s", client.ID, name, ending.On, ending.Successor)
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d names were found", count)
	}
}
