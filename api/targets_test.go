package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// crowd is a proxy whose workspace has keys of several providers, and what each of
// them was sent.
type crowd struct {
	*proxy

	mu   sync.Mutex
	sent map[string]string // by name of the key: the last body
	keys map[string]uuid.UUID
}

// setupCrowd starts a proxy before one provider for each key; lists says which models
// each of them has.
func setupCrowd(t *testing.T, keys []tenants.ProviderKey, lists map[string]string) *crowd {
	t.Helper()
	c := &crowd{proxy: setupAt(t, "http://127.0.0.1:1"), sent: map[string]string{}, keys: map[string]uuid.UUID{}}
	for i := range keys {
		name := keys[i].Name
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if list, known := lists[name]; request.Method == http.MethodGet && known {
				_, _ = io.WriteString(w, list)
				return
			} else if request.Method == http.MethodGet {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			body, _ := io.ReadAll(request.Body)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sent[name] = string(body)
			_, _ = io.WriteString(w, `{"from":"`+name+`"}`)
		}))
		t.Cleanup(server.Close)
		keys[i].ID, keys[i].BaseURL, keys[i].Sealed = uuid.New(), server.URL, []byte("sk-"+name)
		c.keys[name] = keys[i].ID
	}
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.keys = keys
	return c
}

func twoProviders() []tenants.ProviderKey {
	return []tenants.ProviderKey{
		{Name: "groq", Provider: tenants.ProviderOpenAI, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"llama-*", "deployed"}}},
		{Name: "claude", Provider: tenants.ProviderAnthropic, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"claude-*"}}},
		{Name: "rest", Provider: tenants.ProviderOpenAI},
	}
}

// Requests go to the key that takes their model, byte for byte, and count for it.
func TestModelsGoToTheirKeys(t *testing.T) {
	t.Parallel()
	c := setupCrowd(t, twoProviders(), nil)
	n := 0
	for _, test := range []struct{ path, body, want string }{
		{chatPath, `{"messages":[{"role":"user","content":"x"}], "model":"llama-4"}`, "groq"},
		{chatPath, `{ "model" : "gpt-5.5","messages":[{"role":"user","content":"x"}]}`, "rest"},
		{responsesPath, `{"model":"LLAMA-4","input":"x"}`, "groq"},
		{"/v1/embeddings", `{"input":["` + strings.Repeat("x", 5000) + `"],"model":"llama-embed"}`, "groq"},
		{"/v1/embeddings", `{"input":["x"],"model":"text-embedding-3-small"}`, "rest"},
		{"/v1/embeddings", `{"model":"llama-embed","input":["` + strings.Repeat("x", 3*maxPeek) + `"]}`, "groq"},
		{"/v1/embeddings", `not JSON`, "rest"},
		{messagesPath, `{"model":"claude-opus-5","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, "claude"},
	} {
		got := c.send(http.MethodPost, test.path, test.body, "Content-Type", "application/json")
		n++
		if !strings.Contains(string(got.body), test.want) || c.sent[test.want] != test.body {
			t.Errorf("%s %.60s: status %d: %.100s; sent was %.100s", test.path, test.body, got.status, got.body, c.sent[test.want])
		}
		if kept := c.last(n); kept.Answer.ProviderKey != c.keys[test.want] {
			t.Errorf("%s %.60s counts for %s", test.path, test.body, kept.Answer.ProviderKey)
		}
	}
	named := c.send(http.MethodPost, chatPath, `{"model":"gpt-5.5","messages":[{"role":"user","content":"x"}]}`, "X-Palimpsest-Provider", c.keys["rest"].String())
	if !strings.Contains(string(named.body), "rest") {
		t.Errorf("named by id: %s", named.body)
	}
}

func TestModelThatNoKeyTakesIsRefusedInTheClientsDialect(t *testing.T) {
	t.Parallel()
	c := setupCrowd(t, twoProviders()[:2], nil)
	chat := c.send(http.MethodPost, chatPath, `{"model":"gpt-5.5","messages":[{"role":"user","content":"x"}]}`)
	if chat.status != http.StatusNotFound || !strings.Contains(string(chat.body), `"code":"model_not_found"`) || !strings.Contains(string(chat.body), "Allowed are deployed, llama-*") {
		t.Errorf("status %d: %s", chat.status, chat.body)
	}
	messages := c.send(http.MethodPost, messagesPath, `{"model":"gpt-5.5","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`)
	if messages.status != http.StatusNotFound || !strings.Contains(string(messages.body), `"type":"not_found_error"`) || !strings.Contains(string(messages.body), "claude-*") {
		t.Errorf("status %d: %s", messages.status, messages.body)
	}
	if len(c.sent) != 0 {
		t.Errorf("sent was %v", c.sent)
	}
}

// W9: the models of all keys, each from the key that it goes to, as it was described.
func TestModelsOfAllKeysAreListed(t *testing.T) {
	t.Parallel()
	c := setupCrowd(t, twoProviders(), map[string]string{
		"groq": `{"object":"list","data":[{"id":"llama-4","object":"model","created":1,"owned_by":"meta","context_window":131072},{"id":"whisper","object":"model"}]}`,
		"rest": `{"object":"list","data":[{"id":"gpt-5.5","object":"model","created":2,"owned_by":"openai"},{"id":"llama-4","object":"model","owned_by":"rest"}]}`,
	})
	got := c.send(http.MethodGet, modelsPath, "")
	want := `{"object":"list","data":[{"id":"llama-4","object":"model","created":1,"owned_by":"meta","context_window":131072},` +
		`{"id":"deployed","object":"model","created":0,"owned_by":"palimpsest"},{"id":"gpt-5.5","object":"model","created":2,"owned_by":"openai"}]}`
	if got.status != http.StatusOK || string(got.body) != want {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

// A provider that does not answer hides its own models only.
func TestProviderThatFailsHidesNoOthersModels(t *testing.T) {
	t.Parallel()
	c := setupCrowd(t, twoProviders(), map[string]string{"rest": `{"object":"list","data":[{"id":"gpt-5.5","object":"model"}]}`})
	if got := c.send(http.MethodGet, modelsPath, ""); got.status != http.StatusOK || !strings.Contains(string(got.body), "gpt-5.5") {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if got := c.send(http.MethodGet, modelsPath, "", "X-Palimpsest-Provider", "groq"); got.status != http.StatusInternalServerError {
		t.Errorf("of the one that fails: status %d: %s", got.status, got.body)
	}
}
