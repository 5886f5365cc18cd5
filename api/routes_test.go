package api

import (
	"net/http"
	"testing"

	"palimpsest/pipeline/wire"
)

// W7: clients build these paths from their base URL.
func TestPathsThatClientsBuildAreUnderstood(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/v1/messages":                     "/v1/messages",
		"/messages":                        "/v1/messages",
		"/v1/v1/messages":                  "/v1/messages",
		"/anthropic/v1/messages":           "/v1/messages",
		"/anthropic/messages":              "/v1/messages",
		"/messages/count_tokens":           "/v1/messages/count_tokens",
		"/openai/v1/chat/completions":      "/v1/chat/completions",
		"/openai/chat/completions":         "/v1/chat/completions",
		"/chat/completions":                "/v1/chat/completions",
		"/responses":                       "/v1/responses",
		"/openai/responses/compact":        "/v1/responses/compact",
		"/v1/v1/v1/messages":               "/v1/messages",
		"/openai/v1/models":                "/v1/models",
		"/keys":                            "/keys",
		"/sessions/0199/archive":           "/sessions/0199/archive",
		"/anthropically":                   "/anthropically",
		"/v1/files/file_1":                 "/v1/files/file_1",
		"/anthropic/v1/messages/batches/1": "/v1/messages/batches/1",
	} {
		if got := canonical(path); got != want {
			t.Errorf("%s is taken for %s, want %s", path, got, want)
		}
	}
}

func TestSessionIsNamedByTheFirstHeaderThatIsThere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header       http.Header
		request      wire.Request
		name, source string
		lane         string
	}{
		"our own header wins": {
			header: http.Header{"X-Palimpsest-Session-Id": {"mine"}, "X-Claude-Code-Session-Id": {"theirs"}},
			name:   "mine", source: "x-palimpsest-session-id",
		},
		"claude code with a subagent": {
			header: http.Header{"X-Claude-Code-Session-Id": {"s1"}, "X-Claude-Code-Agent-Id": {"a1"}},
			name:   "s1", source: "x-claude-code-session-id", lane: "a1",
		},
		"codex with a parent thread": {
			header: http.Header{"Session-Id": {"s2"}, "X-Codex-Turn-Metadata": {`{"thread_id":"t2","parent_thread_id":"t1"}`}},
			name:   "s2", source: "session-id", lane: "t2",
		},
		"opencode": {header: http.Header{"X-Session-Affinity": {"ses_1"}}, name: "ses_1", source: "x-session-affinity"},
		"the body's own member": {
			request: wire.Request{SessionID: "k", SessionSource: "prompt_cache_key"}, name: "k", source: "prompt_cache_key",
		},
		"nothing": {source: "lineage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, err := readControls(test.header)
			if err != nil {
				t.Fatal(err)
			}
			got := hint(test.header, asked, test.request)
			if got.Name != test.name || got.Source != test.source || got.Lane != test.lane {
				t.Errorf("hint %+v, want name %q source %q lane %q", got, test.name, test.source, test.lane)
			}
		})
	}
}

func TestWrongControlsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]http.Header{
		"X-Palimpsest-Session-Id": {"X-Palimpsest-Session-Id": {string(make([]byte, maxSessionID+1))}},
		"X-Palimpsest-Base-Url":   {"X-Palimpsest-Base-Url": {"https://example.com"}},
		"X-Palimpsest-Bypass":     {"X-Palimpsest-Bypass": {"perhaps"}},
	} {
		if _, err := readControls(header); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	asked := controls{target: "a lot"}
	if _, err := asked.layer(); err == nil {
		t.Error("X-Palimpsest-Target-Utilization: accepted")
	}
}
