package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
)

// canary is a provider's key that looks like nothing: no pattern finds it.
const canary = "Zx9canaryWq4providerTt7"

// careless is a provider that fails in every way and repeats the key each time.
func careless(w http.ResponseWriter, request *http.Request) {
	key := strings.TrimPrefix(request.Header.Get("X-Api-Key")+request.Header.Get("Authorization"), "Bearer ")
	body, _ := io.ReadAll(request.Body)
	said := fmt.Sprintf(`{"type":"error","error":{"type":"authentication_error","message":"Incorrect API key provided: %s"}}`, key)
	w.Header().Set("X-Refused-Key", key)
	switch {
	case bytes.Contains(body, []byte("unauthorized")):
		w.WriteHeader(http.StatusUnauthorized)
	case bytes.Contains(body, []byte("too long")):
		w.WriteHeader(http.StatusBadRequest)
		said = fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum for %s"}}`, key)
	case bytes.Contains(body, []byte("broken")):
		w.WriteHeader(http.StatusBadGateway)
		said = `{"error":{"message":"` + key
	case bytes.Contains(body, []byte("cut off")):
		w.Header().Set("Content-Length", "100000")
		w.WriteHeader(http.StatusInternalServerError)
	case bytes.Contains(body, []byte("silent")):
		<-request.Context().Done()
		return
	default:
		w.WriteHeader(http.StatusForbidden)
	}
	_, _ = io.WriteString(w, said)
}

// S14, S7: neither a provider's key nor an API key is in anything that a run writes or
// answers, whatever goes wrong on the way.
func TestSecretsAreInNothingThatIsWritten(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	provider := httptest.NewServer(http.HandlerFunc(careless))
	t.Cleanup(provider.Close)
	w := i.tenant("canary")
	var answers bytes.Buffer
	for _, dialect := range []string{"anthropic", "openai"} {
		var stored struct{ ID string }
		w.call(http.MethodPost, "/api/v1/provider-keys", map[string]any{"provider": dialect, "name": "careless-" + dialect, "key": canary, "base_url": provider.URL}, http.StatusCreated, &stored)
		var tested json.RawMessage
		w.call(http.MethodPost, "/api/v1/provider-keys/"+stored.ID+"/test", nil, http.StatusOK, &tested)
		answers.Write(tested)
	}
	for _, what := range []string{"unauthorized", "too long", "broken", "cut off", "forbidden"} {
		for path, dialect := range map[string]string{"/v1/messages": "anthropic", "/v1/chat/completions": "openai", "/v1/embeddings": "openai"} {
			body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":10,"input":"%[1]s","messages":[{"role":"user","content":"%[1]s"}]}`, what)
			w.careless(&answers, path, body, "careless-"+dialect)
		}
	}
	w.silence("careless-anthropic")
	w.careless(&answers, "/v1/messages", `{"model":`, "careless-anthropic")
	w.careless(&answers, "/v1/messages", `{"model":"m","messages":[]}`, "nobody")
	var listed json.RawMessage
	for _, path := range []string{"/api/v1/provider-keys", "/api/v1/keys", "/api/v1/requests", "/api/v1/sessions"} {
		w.call(http.MethodGet, path, nil, http.StatusOK, &listed)
		answers.Write(listed)
	}
	metrics := w.metrics()
	i.shutdown() // everything is recorded then
	i.boot()
	for _, path := range []string{"/api/v1/export", "/api/v1/audit", "/api/v1/config/export", "/providers", "/keys", "/requests", "/sessions", "/overview", "/audit"} {
		answers.Write(w.shown(path))
	}
	if !strings.Contains(answers.String(), "sessions/") || !strings.Contains(answers.String(), "usage.ndjson") {
		t.Error("the export holds nothing")
	}
	i.shutdown()

	dump, err := exec.CommandContext(t.Context(), "pg_dump", "--inserts", i.config.Storage.DatabaseURL).Output()
	if err != nil {
		t.Fatalf("dump the database: %v", err)
	}
	if !bytes.Contains(dump, []byte("careless-anthropic")) || !strings.Contains(answers.String(), strings.Repeat("*", len(canary))) || !strings.Contains(i.log.String(), `"status":401`) {
		t.Fatal("the run did not do what the test looks at")
	}
	for place, text := range map[string]string{"log": i.log.String(), "answers": answers.String(), "metrics": metrics, "database": string(dump)} {
		for name, secret := range map[string]string{"provider key": canary, "API key": w.key, "login": w.cookies[0].Value, "provider key in hex": fmt.Sprintf("%x", canary), "API key in hex": fmt.Sprintf("%x", w.key)} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("the %s holds the %s: …%s", place, name, text[max(0, at-80):at])
			}
		}
	}
}

// shown returns what the tenant's person is answered at an address.
func (w *tenant) shown(path string) []byte {
	w.t.Helper()
	cookies := &http.Request{Header: http.Header{}}
	for _, cookie := range w.cookies {
		cookies.AddCookie(cookie)
	}
	response, answer := w.asks(http.MethodGet, path, "", cookies.Header)
	if response.StatusCode != http.StatusOK {
		w.t.Errorf("GET %s: status %d: %.300s", path, response.StatusCode, answer)
	}
	return answer
}

// careless sends a request with a named provider key and keeps its whole answer.
func (w *tenant) careless(answers *bytes.Buffer, path, body, provider string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url(path), strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Palimpsest-Provider", provider)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Fprintln(answers, err)
		return
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	fmt.Fprintln(answers, response.Status, response.Header, string(content), err)
}

// silence sends a request that the provider never answers, and leaves.
func (w *tenant) silence(provider string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url("/v1/messages"), strings.NewReader(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"silent"}]}`))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", w.key)
	request.Header.Set("X-Palimpsest-Provider", provider)
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
		w.t.Errorf("it was answered with %d", response.StatusCode)
	}
}

// metrics returns what the program's metrics say.
func (w *tenant) metrics() string {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	w.program.admin.Handler.ServeHTTP(recorder, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}
