package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

// Every wrong request gets an error that says what to do, in its client's dialect.
func TestWrongRequestsAreExplained(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("wrong")
	good := `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`
	chat := `{"model":"gpt-5.5","messages":[{"role":"user","content":"hi"}]}`
	huge := `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"` + strings.Repeat("a", 32<<20) + `"}]}`
	for name, test := range map[string]struct {
		path   string
		body   string
		header map[string]string
		status int
		says   string
	}{
		"unknown key":                  {"/v1/messages", good, map[string]string{"Authorization": "Bearer plm_nope"}, 401, "authentication_error"}, // W4
		"unknown key, openai":          {"/v1/chat/completions", chat, map[string]string{"Authorization": "Bearer plm_nope"}, 401, "invalid_api_key"},
		"no key":                       {"/v1/messages", good, map[string]string{"Authorization": ""}, 401, "x-api-key"},
		"malformed JSON":               {"/v1/messages", `{"model":"claude-sonnet-4-5","messages":[{`, nil, 400, "cannot be read"},
		"no messages":                  {"/v1/messages", `{"model":"claude-sonnet-4-5"}`, nil, 400, "messages"},
		"no object":                    {"/v1/responses", `[1,2]`, nil, 400, "cannot be read"},
		"too large":                    {"/v1/messages", huge, map[string]string{"Expect": "100-continue"}, 413, "request_too_large"}, // W11; who sends on may miss the answer
		"unknown module":               {"/v1/messages", good, map[string]string{"X-Palimpsest-Pipe": "ipc,shrink"}, 400, "shrink"},
		"target out of range":          {"/v1/messages", good, map[string]string{"X-Palimpsest-Target-Utilization": "1.5"}, 400, "ipc.targetUtilization"},
		"unknown provider":             {"/v1/chat/completions", chat, map[string]string{"X-Palimpsest-Provider": "groq"}, 400, "Providers page"},
		"unknown encoding":             {"/v1/messages", good, map[string]string{"Content-Encoding": "compress"}, 415, "gzip"},
		"not the gzip it claims to be": {"/v1/messages", good, map[string]string{"Content-Encoding": "gzip"}, 400, "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(i.double.Requests())
			response, answer := w.post(test.path, []byte(test.body), test.header)
			if response.StatusCode != test.status || !bytes.Contains(answer, []byte(test.says)) {
				t.Errorf("status %d: %s; want %d and %q", response.StatusCode, answer, test.status, test.says)
			}
			if source := response.Header.Get("X-Palimpsest-Error-Source"); source != "proxy" {
				t.Errorf("error source %q, want proxy", source)
			}
			if response.Header.Get("X-Should-Retry") != "false" || response.Header.Get("X-Palimpsest-Request-Id") == "" {
				t.Errorf("headers %v lack x-should-retry or the request id", response.Header)
			}
			if len(i.double.Requests()) != before {
				t.Error("the provider was asked")
			}
		})
	}
}

func TestMissingProviderKeyIsNamed(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("bare")
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	w.call(http.MethodGet, "/api/v1/provider-keys", nil, http.StatusOK, &list)
	for _, stored := range list.Data {
		w.call(http.MethodDelete, "/api/v1/provider-keys/"+stored.ID, nil, http.StatusNoContent, nil)
	}
	response, answer := w.post("/v1/messages", []byte(`{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`), nil)
	if response.StatusCode != http.StatusBadRequest || !bytes.Contains(answer, []byte("Providers page")) {
		t.Errorf("status %d: %s", response.StatusCode, answer)
	}
}

func TestUnreachableProviderIsExplained(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("alone")
	response, answer := w.post("/v1/messages", []byte(`{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`), map[string]string{
		"X-Palimpsest-Provider-Key": "sk-once", "X-Palimpsest-Base-Url": "http://127.0.0.1:1",
	})
	if response.StatusCode != http.StatusBadGateway || !bytes.Contains(answer, []byte("could not be reached")) {
		t.Errorf("status %d: %s", response.StatusCode, answer)
	}
}

// W23: what the provider says goes back as it came.
func TestProvidersErrorsPassUnchanged(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{Window: 2_000})
	w := i.tenant("errors")
	body := []byte(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`)
	for _, misbehave := range []string{"429", "529", "500"} {
		response, answer := w.post("/v1/messages", body, map[string]string{"X-Double-Misbehave": misbehave})
		if response.Header.Get("X-Palimpsest-Error-Source") != "provider" || !bytes.Contains(answer, []byte(`"type":"error"`)) {
			t.Errorf("%s: status %d: %s", misbehave, response.StatusCode, answer)
		}
	}
	// Typed text is never cut: what does not fit gets the provider's own words. // B13
	long := `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"` + strings.Repeat("many words ", 3000) + `"}]}`
	response, answer := w.post("/v1/messages", []byte(long), nil)
	if response.StatusCode != http.StatusBadRequest || !bytes.Contains(answer, []byte("prompt is too long: ")) {
		t.Errorf("status %d: %s", response.StatusCode, answer)
	}
}
