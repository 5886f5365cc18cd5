package client_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openairesponses"
)

// W45: what Codex says in its headers comes before all text.
func TestHeadersTellWhatARequestIsFor(t *testing.T) {
	t.Parallel()
	type want struct {
		kind    client.Kind
		trigger client.Trigger
		source  string
		window  int
		agent   bool
	}
	for name, test := range map[string]struct {
		header http.Header
		want   want
	}{
		"claude code's main line":      {header("X-Claude-Code-Request-Class", "main"), want{client.Main, "", "header x-claude-code-request-class", -1, false}},
		"its subagent":                 {header("X-Claude-Code-Request-Class", "subagent", "X-Claude-Code-Agent-Id", "a1"), want{client.Subagent, "", "header x-claude-code-request-class", -1, true}},
		"a subagent without the class": {header("X-Claude-Code-Agent-Id", "a1"), want{client.Subagent, "", "header", -1, true}},
		"its workflow":                 {header("X-Claude-Code-Request-Class", "workflow"), want{client.Subagent, "", "header x-claude-code-request-class", -1, false}},
		"its small questions":          {header("X-Claude-Code-Request-Class", "auxiliary"), want{client.Auxiliary, "", "header x-claude-code-request-class", -1, false}},
		"its side replies":             {header("X-Claude-Code-Request-Class", "side_reply"), want{client.SideReply, "", "header x-claude-code-request-class", -1, false}},
		"its compaction by hand":       {header("X-Claude-Code-Request-Class", "compaction", "X-Claude-Code-Compaction", "manual"), want{client.Compaction, client.Manual, "header x-claude-code-compaction", -1, false}},
		"its reactive compaction":      {header("X-Claude-Code-Compaction", "reactive"), want{client.Compaction, client.Reactive, "header x-claude-code-compaction", -1, false}},
		"a compaction without trigger": {header("X-Claude-Code-Request-Class", "compaction"), want{client.Compaction, "", "header x-claude-code-request-class", -1, false}},
		"the first request after": {
			header("X-Claude-Code-Request-Class", "main", "X-Claude-Code-Context-Compacted", "auto"),
			want{client.AfterCompaction, client.Auto, "header x-claude-code-context-compacted", -1, false},
		},
		"codex's turn":                       {header("X-Codex-Turn-Metadata", `{"thread_id":"t1","window_number":1,"request_kind":"turn"}`, "X-Codex-Window-Id", "t1:7"), want{client.Main, "", "header x-codex-turn-metadata", 1, false}},
		"codex's compaction":                 {header("X-Codex-Turn-Metadata", `{"window_number":0,"request_kind":"compaction","compaction":{"trigger":"auto","reason":"context_limit"}}`), want{client.Compaction, client.Auto, "header x-codex-turn-metadata", 0, false}},
		"codex's child":                      {header("X-Codex-Turn-Metadata", `{"thread_id":"t2","parent_thread_id":"t1","request_kind":"turn"}`), want{client.Subagent, "", "header x-codex-turn-metadata", -1, true}},
		"codex's title":                      {header("X-Codex-Turn-Metadata", `{"thread_id":"t2","session_id":"t2","request_kind":"turn","thread_source":"thread_title"}`), want{client.Title, "", "header x-codex-turn-metadata", -1, false}},
		"codex's window alone":               {header("X-Codex-Window-Id", "01a1:2", "User-Agent", "codex_exec/0.169.0"), want{client.Main, "", "client", 2, false}},
		"codex's review":                     {header("X-Openai-Subagent", "review"), want{client.Subagent, "", "header", -1, true}},
		"codex's old compaction":             {header("X-Openai-Subagent", "compact"), want{client.Compaction, "", "header x-openai-subagent", -1, false}},
		"copilot's compaction":               {header("X-Interaction-Type", "conversation-compaction"), want{client.Compaction, "", "header x-interaction-type", -1, false}},
		"copilot's subagent":                 {header("X-Interaction-Type", "conversation-subagent", "X-Initiator", "agent"), want{client.Subagent, "", "header", -1, true}},
		"copilot's person":                   {header("X-Interaction-Type", "conversation-user", "X-Initiator", "user"), want{client.Main, "", "client", -1, false}},
		"codex's memory":                     {header("X-Openai-Subagent", "memory_consolidation"), want{client.Auxiliary, "", "header x-openai-subagent", -1, false}},
		"codex's guardian":                   {header("X-Openai-Subagent", "guardian", "X-Codex-Turn-Metadata", `{"thread_id":"t2","parent_thread_id":"t1","request_kind":"turn"}`), want{client.Auxiliary, "", "header x-openai-subagent", -1, true}},
		"codex's judge of hooks":             {header("X-Openai-Subagent", "hook_auto_review"), want{client.Auxiliary, "", "header x-openai-subagent", -1, false}},
		"a word nobody knows":                {header("X-Claude-Code-Request-Class", "poetry"), want{client.Unknown, "", "", -1, false}},
		"metadata that is not JSON":          {header("X-Codex-Turn-Metadata", `{"window_numb [… cut …] 1,"request_kind":"turn"}`), want{client.Unknown, "", "", -1, false}},
		"a window that is not a number":      {header("X-Codex-Window-Id", "01a1:x"), want{client.Unknown, "", "", -1, false}},
		"nothing":                            {header(), want{client.Unknown, "", "", -1, false}},
		"an agent that is known by its name": {header("User-Agent", "opencode/1.18.33 ai-sdk/provider-utils/4.0.46"), want{client.Main, "", "client", -1, false}},
	} {
		got := client.Classify(test.header, "/v1/messages", nil)
		if (want{got.Kind, got.Trigger, got.Source, got.Window, got.Agent}) != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		if strings.HasPrefix(got.Source, "header") && got.Confidence != 1 || (got.Kind == client.Unknown) != (got.Confidence == 0) {
			t.Errorf("%s: confidence %v", name, got.Confidence)
		}
	}
}

func TestHeadersOutweighWhatTheBodySays(t *testing.T) {
	t.Parallel()
	asked := open(t, anthropic.Codec{}, body(t, anthropic.Codec{}, "", user(claudeAsks)))
	if class := client.Classify(header("X-Claude-Code-Request-Class", "main"), "/v1/messages", asked); class.Kind != client.Main {
		t.Errorf("a pasted prompt counts more than the header: %+v", class)
	}
	if class := client.Classify(http.Header{}, "/v1/messages", asked); class.Kind != client.Compaction {
		t.Errorf("without the header: %+v", class)
	}
}

func TestPathOfTheProvidersCompactionTells(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]client.Kind{
		"/v1/responses/compact": client.Compaction, "/responses/compact/": client.Compaction,
		"/v1/responses": client.Unknown, "/v1/responses/compacted": client.Unknown,
	} {
		if got := client.Classify(http.Header{}, path, nil); got.Kind != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// W45: what Codex repeats in the body serves where a gateway dropped its headers.
func TestCodexMetadataInTheBodyTells(t *testing.T) {
	t.Parallel()
	raw := `{"model":"m","input":[{"type":"message","role":"user","content":"go on"}],"client_metadata":{
		"x-codex-window-id":"t1:3","x-codex-turn-metadata":"{\"request_kind\":\"compaction\",\"thread_id\":\"t1\",\"compaction\":{\"trigger\":\"manual\"}}"}}`
	got := client.Classify(http.Header{}, "/v1/responses", open(t, openairesponses.Codec{}, []byte(raw)))
	if got.Kind != client.Compaction || got.Trigger != client.Manual || got.Window != 3 || got.Source != "metadata request_kind" || got.Confidence >= 1 {
		t.Errorf("%+v", got)
	}
}

// W38: what stands beside the conversation is told apart from it.
func TestSideRequestsAreThoseBesideTheConversation(t *testing.T) {
	t.Parallel()
	for kind, want := range map[client.Kind]bool{
		client.Compaction: true, client.Title: true, client.Auxiliary: true, client.SideReply: true,
		client.Main: false, client.Subagent: false, client.AfterCompaction: false, client.Unknown: false,
	} {
		if got := (client.Class{Kind: kind}).IsSide(); got != want {
			t.Errorf("%s: side %v", kind, got)
		}
	}
}

// E8
func TestFirstRequestAfterACompactionIsThatWhoseMarkerIsNew(t *testing.T) {
	t.Parallel()
	marked := client.Class{Kind: client.Main, Window: -1, Marker: client.Marker{From: 2, Boundary: 3, Source: "text", Confidence: 0.9}}
	none := client.Class{Kind: client.Main, Window: -1, Marker: client.Marker{From: -1, Boundary: -1}}
	windowed := func(class client.Class, window int) client.Class {
		class.Window = window
		return class
	}
	of := func(kind client.Kind) client.Class {
		class := marked
		class.Kind = kind
		return class
	}
	branch := windowed(marked, 0)
	branch.Marker.Branch = true
	for name, test := range map[string]struct {
		class client.Class
		known client.Known
		want  bool
	}{
		"a lane never seen":                   {marked, client.Known{}, true},
		"a history left before the marker":    {marked, client.Known{Messages: 2}, true},
		"the marker was there before":         {marked, client.Known{Messages: 3}, false},
		"a later request":                     {marked, client.Known{Messages: 9}, false},
		"a rewound history":                   {marked, client.Known{Finalized: true}, false},
		"the same summary once more":          {marked, client.Known{Messages: 4, Finalized: true, Asked: true}, true},
		"a summary asked for in vain":         {marked, client.Known{Messages: 9, Asked: true}, false},
		"asked, and nothing found":            {none, client.Known{Asked: true}, false},
		"no marker":                           {none, client.Known{}, false},
		"the header says so":                  {client.Class{Kind: client.AfterCompaction, Window: -1}, client.Known{Messages: 9}, true},
		"an agent that compacted":             {of(client.Subagent), client.Known{}, true},
		"nobody known":                        {of(client.Unknown), client.Known{}, true},
		"the next compaction, marker kept":    {of(client.Compaction), client.Known{}, false},
		"a title":                             {of(client.Title), client.Known{}, false},
		"a higher window":                     {windowed(none, 1), client.Known{Windows: 1, Messages: 4}, true},
		"the same window":                     {windowed(marked, 1), client.Known{Windows: 2}, false},
		"a window of a lane never seen":       {windowed(none, 3), client.Known{}, false},
		"a window and a marker, never seen":   {windowed(marked, 3), client.Known{}, true},
		"a branch does not open a new window": {branch, client.Known{Windows: 1, Messages: 2}, true},
	} {
		if got := test.class.First(test.known); got != test.want {
			t.Errorf("%s: first %v", name, got)
		}
		settled := test.class.Finalize(test.known)
		if (settled.Kind == client.AfterCompaction) != test.want || !test.want && settled != test.class {
			t.Errorf("%s: settled as %+v", name, settled)
		}
		if test.want && settled.Confidence <= 0 && test.class.Kind != client.AfterCompaction {
			t.Errorf("%s: settled without confidence: %+v", name, settled)
		}
	}
}

// W38: what Claude Code asks of a page that it has fetched, without its tools.
func TestQuestionsAboutAFetchedPageStandBesideTheConversation(t *testing.T) {
	t.Parallel()
	const page = `{"role":"user","content":"\nWeb page content:\n---\nHello.\n---\n\nWhat does it say?"}`
	claude := "claude-cli/2.1.332 (external, sdk-cli)"
	for name, test := range map[string]struct {
		agent, body string
		kind        client.Kind
	}{
		"a fetched page":         {claude, `{"messages":[` + page + `]}`, client.Auxiliary},
		"an empty list of tools": {claude, `{"tools":[],"messages":[` + page + `]}`, client.Auxiliary},
		"a page with tools":      {claude, `{"tools":[{"name":"Bash"}],"messages":[` + page + `]}`, client.Main},
		"a conversation of it":   {claude, `{"messages":[` + page + `,{"role":"assistant","content":"Hello."},{"role":"user","content":"Thanks."}]}`, client.Main},
		"another question":       {claude, `{"messages":[{"role":"user","content":"Is this safe?"}]}`, client.Main},
		"another client's":       {"opencode/1.18.33", `{"messages":[` + page + `]}`, client.Main},
		"nobody's that is known": {"", `{"messages":[` + page + `]}`, client.Unknown},
		"no message":             {claude, `{"messages":[]}`, client.Main},
	} {
		if class := client.Classify(header("User-Agent", test.agent), "/v1/messages", open(t, anthropic.Codec{}, []byte(test.body))); class.Kind != test.kind {
			t.Errorf("%s: %+v", name, class)
		}
	}
}
