package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/tokens"
	"palimpsest/web/browsertest"
)

// providerKey is the only key that the provider double lets in.
const providerKey = "sk-double-0123456789abcdef"

func TestMain(m *testing.M) { dbtest.Main(m, browsertest.Stop) }

// instance is the real program with a provider double behind it.
type instance struct {
	t       testing.TB
	config  settings.Config
	program *program
	host    string // that requests name; "" means the address
	log     *syncBuffer
	double  *providertest.Server
}

// tenant is a workspace of an instance, ready to send exchanges.
type tenant struct {
	*instance
	key     string
	cookies []*http.Cookie
}

// start starts the program on free ports and a database of its own.
func start(t testing.TB, double providerdouble.Config) *instance {
	t.Helper()
	return startOn(t, dbtest.New(t).OwnerURL, double)
}

// startOn starts the program on free ports and a given database.
func startOn(t testing.TB, databaseURL string, double providerdouble.Config) *instance {
	t.Helper()
	double.Key = providerKey
	if double.Count == nil {
		double.Count = counter(t).Count
	}
	config := settings.DefaultConfig()
	config.Serving.Addr, config.Serving.AdminAddr = "127.0.0.1:0", "127.0.0.1:0"
	config.Storage.DatabaseURL, config.Storage.DataDir = databaseURL, t.TempDir()
	config.Storage.SecretKey = dbtest.SecretKey
	config.Serving.AllowPrivateUpstreams, config.Serving.DrainDelay = true, 0
	i := &instance{t: t, config: config, log: &syncBuffer{}, double: providertest.NewServer(t, double)}
	i.boot()
	return i
}

// boot starts the program; after shutdown, it is the same installation again.
func (i *instance) boot() {
	i.t.Helper()
	program, err := newProgram(i.t.Context(), i.config, slog.New(slog.NewJSONHandler(i.log, nil)))
	if err != nil {
		i.t.Fatal(err)
	}
	i.program = program
	i.t.Cleanup(func() { program.stop(context.Background()) })
}

func (i *instance) shutdown() { i.program.stop(i.t.Context()) }

func (i *instance) url(path string) string { return "http://" + i.program.addr() + path }

// addr returns the address that the product listens on.
func (p *program) addr() string { return p.Listening }

// tenant signs up a workspace, stores a key for each provider and creates an API key.
func (i *instance) tenant(name string) *tenant {
	i.t.Helper()
	w := &tenant{instance: i}
	w.join(name)
	return w
}

// signUp signs up the workspace of a tenant, and no more.
func (w *tenant) signUp(name string) {
	w.t.Helper()
	response := w.call(http.MethodPost, "/api/v1/signup", map[string]any{
		"email": name + "@example.com", "password": "correct horse battery", "workspace": name,
	}, http.StatusCreated, nil)
	w.cookies = response.Cookies()
}

// join signs up the workspace of a tenant, stores its provider keys and creates its API key.
func (w *tenant) join(name string) {
	w.t.Helper()
	w.signUp(name)
	for _, provider := range []string{"anthropic", "openai"} {
		w.call(http.MethodPost, "/api/v1/provider-keys", map[string]any{
			"provider": provider, "name": provider, "key": providerKey, "base_url": w.double.URL,
		}, http.StatusCreated, nil)
	}
	var created struct {
		Secret string `json:"secret"`
	}
	w.call(http.MethodPost, "/api/v1/keys", map[string]any{"name": "test", "scopes": []string{"proxy"}}, http.StatusCreated, &created)
	if !strings.HasPrefix(created.Secret, "plm_") {
		w.t.Fatalf("API key %q does not start with plm_", created.Secret)
	}
	w.key = created.Secret
}

// call sends a request to the product API, checks its status and decodes the answer.
func (w *tenant) call(method, path string, body any, status int, into any) *http.Response {
	w.t.Helper()
	var encoded bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&encoded).Encode(body); err != nil {
			w.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url(path), &encoded)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for _, cookie := range w.cookies {
		request.AddCookie(cookie)
	}
	response, content := w.do(request)
	if response.StatusCode != status {
		w.t.Fatalf("%s %s: status %d, want %d: %s", method, path, response.StatusCode, status, content)
	}
	if into != nil {
		if err := json.Unmarshal(content, into); err != nil {
			w.t.Fatalf("%s %s: %v in %s", method, path, err, content)
		}
	}
	return response
}

// post sends a body through the proxy and returns the whole answer.
func (w *tenant) post(path string, body []byte, header map[string]string) (*http.Response, []byte) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url(path), bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+w.key)
	if strings.HasPrefix(path, "/v1/messages") {
		request.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	return w.do(request)
}

// get reads a JSON answer with the API key.
func (w *tenant) get(path string, into any) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url(path), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.key)
	response, content := w.do(request)
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("GET %s: status %d: %s", path, response.StatusCode, content)
	}
	if err := json.Unmarshal(content, into); err != nil {
		w.t.Fatalf("GET %s: %v in %s", path, err, content)
	}
}

func (i *instance) do(request *http.Request) (*http.Response, []byte) {
	i.t.Helper()
	if i.host != "" {
		request.Host = i.host
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		i.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		i.t.Fatalf("%s %s: %v", request.Method, request.URL.Path, err)
	}
	return response, content
}

// setPipelinef saves the workspace's pipeline config.
func (w *tenant) setPipelinef(format string, values ...any) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPut, w.url("/api/v1/pipeline"), strings.NewReader(fmt.Sprintf(format, values...)))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/yaml")
	for _, cookie := range w.cookies {
		request.AddCookie(cookie)
	}
	if response, content := w.do(request); response.StatusCode != http.StatusOK {
		w.t.Fatalf("save pipeline: status %d: %s", response.StatusCode, content)
	}
}

func counter(t testing.TB) *tokens.Counter {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return counter
}
