package client_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

func TestSessionIsNamedByTheFirstSign(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	for name, test := range map[string]struct {
		header  http.Header
		request wire.Request
		want    session.Hint
	}{
		"our own header wins":    {header: header("X-Palimpsest-Session-Id", "mine", "X-Claude-Code-Session-Id", "theirs"), want: session.Hint{Name: "mine", Source: "x-palimpsest-session-id"}},
		"claude code's subagent": {header: header("X-Claude-Code-Session-Id", "s1", "X-Claude-Code-Agent-Id", "a1"), want: session.Hint{Name: "s1", Source: "x-claude-code-session-id", Lane: "a1"}},
		"our own lane wins":      {header: header("X-Palimpsest-Lane", "l1", "X-Claude-Code-Agent-Id", "a1"), want: session.Hint{Source: "lineage", Lane: "l1"}},
		"codex":                  {header: header("Session-Id", "t1", "Thread-Id", "t1", "X-Codex-Turn-Metadata", `{"session_id":"t1","thread_id":"t1"}`), want: session.Hint{Name: "t1", Source: "session-id"}},
		"codex's child":          {header: header("Session-Id", "t1", "X-Codex-Turn-Metadata", `{"thread_id":"t2","parent_thread_id":"t1"}`), want: session.Hint{Name: "t1", Source: "session-id", Lane: "t2"}},
		"codex's child that knows the conversation": {
			header: header("Session-Id", "t1", "X-Codex-Turn-Metadata", `{"session_id":"t1","thread_id":"t2","parent_thread_id":"t1","history_initialization":"warm_fork"}`),
			want:   session.Hint{Name: "t1", Source: "session-id", Lane: "t2", Copied: true},
		},
		"codex's side chat": {
			header: header("Session-Id", "t4", "Thread-Id", "t4", "X-Codex-Turn-Metadata", `{"session_id":"t4","thread_id":"t4","forked_from_thread_id":"t1","history_initialization":"warm_fork","thread_source":"tui_side_chat"}`),
			want:   session.Hint{Name: "t1", Source: "session-id", Lane: "t4", Copied: true},
		},
		"our own session before codex's side chat": {
			header: header("X-Palimpsest-Session-Id", "mine", "Session-Id", "t4", "X-Codex-Turn-Metadata", `{"session_id":"t4","thread_id":"t4","forked_from_thread_id":"t1","history_initialization":"warm_fork"}`),
			want:   session.Hint{Name: "mine", Source: "x-palimpsest-session-id"},
		},
		"codex's fork whose history came from elsewhere": {
			header: header("Session-Id", "t4", "X-Codex-Turn-Metadata", `{"session_id":"t4","thread_id":"t4","forked_from_thread_id":"t1","history_initialization":"new"}`),
			want:   session.Hint{Name: "t4", Source: "session-id"},
		},
		"codex's child of a child": {
			header: header("Session-Id", "t1", "X-Codex-Turn-Metadata", `{"session_id":"t1","thread_id":"t3","parent_thread_id":"t2","history_initialization":"warm_fork"}`),
			want:   session.Hint{Name: "t1", Source: "session-id", Lane: "t3"},
		},
		"codex's question for a title": {
			header:  header("Session-Id", "t5", "Thread-Id", "t5", "X-Codex-Turn-Metadata", `{"session_id":"t5","thread_id":"t5","thread_source":"thread_title"}`),
			request: wire.Request{SessionID: "t5", SessionSource: "prompt_cache_key"}, want: session.Hint{Source: "lineage"},
		},
		"codex's other thread":    {header: header("Session-Id", "t1", "Thread-Id", "t3"), want: session.Hint{Name: "t1", Source: "session-id", Lane: "t3"}},
		"pi with Responses":       {header: header("session_id", "p1"), want: session.Hint{Name: "p1", Source: "session_id"}},
		"a thread without more":   {header: header("Thread-Id", "t1"), want: session.Hint{Name: "t1", Source: "thread-id"}},
		"opencode":                {header: header("X-Session-Affinity", "ses_1", "X-Session-Id", "ses_2"), want: session.Hint{Name: "ses_2", Source: "x-session-id"}},
		"litellm before helicone": {header: header("Helicone-Session-Id", "h", "X-Litellm-Session-Id", "l"), want: session.Hint{Name: "l", Source: "x-litellm-session-id"}},
		"the body":                {request: wire.Request{SessionID: "k", SessionSource: "prompt_cache_key"}, want: session.Hint{Name: "k", Source: "prompt_cache_key"}},
		"a header before the body": {
			header: header("X-Session-Id", "h"), request: wire.Request{SessionID: "k", SessionSource: "prompt_cache_key"},
			want: session.Hint{Name: "h", Source: "x-session-id"},
		},
		"names that are too long are ignored": {
			header: header("X-Session-Id", long, "X-Claude-Code-Agent-Id", long), request: wire.Request{SessionID: long, SessionSource: "prompt_cache_key"},
			want: session.Hint{Source: "lineage"},
		},
		"nothing": {want: session.Hint{Source: "lineage"}},
	} {
		if got := client.Hint(test.header, test.request); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
