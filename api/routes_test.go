package api

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
)

// W7, W8: clients build these paths from their base URL.
func TestPathsThatClientsBuildAreUnderstood(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/v1/messages":                     "/v1/messages",
		"/messages":                        "/v1/messages",
		"/v1/v1/messages":                  "/v1/messages",
		"/anthropic/v1/messages":           "/v1/messages",
		"/anthropic/messages":              "/v1/messages",
		"/messages/count_tokens":           "/v1/messages/count_tokens",
		"/responses/compact":               "/v1/responses/compact",
		"/responses/input_tokens":          "/v1/responses/input_tokens",
		"/models":                          "/v1/models",
		"/openai/v1/chat/completions":      "/v1/chat/completions",
		"/openai/chat/completions":         "/v1/chat/completions",
		"/chat/completions":                "/v1/chat/completions",
		"/responses":                       "/v1/responses",
		"/openai/responses/compact":        "/v1/responses/compact",
		"/v1/v1/v1/messages":               "/v1/messages",
		"/openai/v1/models":                "/v1/models",
		"/api/hello":                       "/api/hello",
		"/v1/api/hello":                    "/api/hello",
		"/anthropic/v1/api/hello":          "/api/hello",
		"/keys":                            "/keys",
		"/sessions/0199/archive":           "/sessions/0199/archive",
		"/anthropically":                   "/anthropically",
		"/v1/files/file_1":                 "/v1/files/file_1",
		"/anthropic/v1/messages/batches/1": "/v1/messages/batches/1",
	} {
		if got := endpointsOf(formats.All()).canonical(path); got != want {
			t.Errorf("%s is taken for %s, want %s", path, got, want)
		}
	}
}

// A format may have its endpoint elsewhere than below /v1.
func TestPathOutsideVersionOneStaysAsItIs(t *testing.T) {
	t.Parallel()
	known := endpoints{"/v1/messages", "/v2/chat"}
	for path, want := range map[string]string{"/v2/chat": "/v2/chat", "/v2/chat/": "/v2/chat", "/openai/v2/chat": "/v2/chat", "/messages": "/v1/messages"} {
		if got := known.canonical(path); got != want {
			t.Errorf("%s is taken for %s, want %s", path, got, want)
		}
	}
}

func TestRequestSentAgainHasTheVersionOfItsOwnFormat(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/v1/messages": "2023-06-01", "/v1/chat/completions": "", "/v1/responses": ""} {
		codec, known := formats.AtPath(path)
		if !known {
			t.Fatalf("%s has no format", path)
		}
		if got := againHeaders(codec.Traits(), http.Header{}, uuid.New()).Get("Anthropic-Version"); got != want {
			t.Errorf("%s is sent again with version %q, want %q", path, got, want)
		}
	}
}

func TestWrongControlsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]http.Header{
		"X-Palimpsest-Session-Id": {"X-Palimpsest-Session-Id": {string(make([]byte, maxID+1))}},
		"X-Palimpsest-Lane":       {"X-Palimpsest-Lane": {string(make([]byte, maxID+1))}},
		"X-Palimpsest-Base-Url":   {"X-Palimpsest-Base-Url": {"https://example.com"}},
		"X-Palimpsest-Bypass":     {"X-Palimpsest-Bypass": {"perhaps"}},
		"X-Palimpsest-Dry-Run":    {"X-Palimpsest-Dry-Run": {"maybe"}},
		"X-Palimpsest-No-Store":   {"X-Palimpsest-No-Store": {"2"}},
	} {
		var invalid tenants.Invalid
		if _, err := readControls(header); !errors.As(err, &invalid) || invalid.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	longest := string(make([]byte, maxID))
	if _, err := readControls(http.Header{"X-Palimpsest-Session-Id": {longest}, "X-Palimpsest-Lane": {longest}}); err != nil {
		t.Errorf("names of %d bytes: %v", maxID, err)
	}
	asked := controls{target: "a lot"}
	if _, err := asked.layer(); err == nil {
		t.Error("X-Palimpsest-Target-Utilization: accepted")
	}
}
