package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// Clients of Google's own models and others: nothing of what
// they send reaches a provider, and each reads an error in the shape that it knows.
func TestAPIsThatAreNotSupportedAreRefusedInTheirShape(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	p := setup(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, test := range []struct{ path, platform, shape string }{
		{"/openai/deployments/gpt/chat/completions?api-version=2026-01-01", "Azure OpenAI below /openai/deployments", openAIShape},
		{"/api/generate", "Ollama", ollamaShape},
		{"/api/tags", "Ollama", ollamaShape},
		{"/v1/v1beta1/projects/p/x", "This API of Google Vertex AI", vertexShape},
		{"/v1/publishers/google/models/g:generateContent", "This API of Google Vertex AI", vertexShape},
		{"/v1/projects", "This API of Google Vertex AI", vertexShape},
		{"/v1/openai/deployments/gpt/chat/completions", "Azure OpenAI below /openai/deployments", openAIShape},
		{"/v1/api/chat", "Ollama", ollamaShape},
	} {
		said, err := json.Marshal(test.platform + " is not supported. " + supported)
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
			answered := p.send(method, test.path, `{"messages":[]}`)
			status := http.StatusBadRequest
			if test.shape == openAIShape || test.shape == ollamaShape {
				status = http.StatusNotFound
			}
			id := answered.header.Get("X-Palimpsest-Request-Id")
			want := strings.NewReplacer("SAID", string(said), "REQUEST", id).Replace(test.shape)
			if id == "" || answered.header.Get("X-Palimpsest-Error-Source") != "proxy" || answered.status != status ||
				answered.header.Get("Content-Type") != "application/json" || answered.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s %s: status %d, header %v", method, test.path, answered.status, answered.header)
			}
			if method == "HEAD" {
				continue // it has no body
			}
			if got := ordered(t, answered.body); got != ordered(t, []byte(want)) {
				t.Errorf("%s %s: %s, want %s", method, test.path, got, want)
			}
		}
		// What no provider is sent is refused for its method, if not for its path.
		for _, method := range []string{"OPTIONS", "PROPFIND", "INVENTED"} {
			answered := p.send(method, test.path, `{"messages":[]}`)
			if answered.status != http.StatusNotFound && answered.status != http.StatusBadRequest && answered.status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d", method, test.path, answered.status)
			}
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the provider was asked %d times", asked.Load())
	}
}

// The errors of the platforms, as their documentation and their clients have them.
const (
	googleShape = `{"error":{"code":400,"message":SAID,"status":"INVALID_ARGUMENT"}}`
	vertexShape = `{"type":"error","error":{"type":"invalid_request_error","message":SAID,"code":400,"status":"INVALID_ARGUMENT"},"request_id":"REQUEST"}`
	openAIShape = `{"error":{"message":SAID,"type":"invalid_request_error","param":null,"code":"unsupported_api"}}`
	ollamaShape = `{"error":SAID}`
)

// ordered writes a JSON object with its members in order; a body that is not one fails the
// test.
func ordered(t *testing.T, body []byte) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		t.Errorf("%v: %s", err, body)
	}
	written, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}
