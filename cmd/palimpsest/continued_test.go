package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/resume"
)

// A session of Claude Code goes on in Codex, in another format, and the archive has it as the continuation.
func TestSessionGoesOnInAnotherClientAsItsContinuation(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("bee")
	s := newShell(t)
	s.allows(w)
	s.does("login", w.url(""), "--name", "ada's laptop")
	login, err := s.kept.Load()
	if err != nil {
		t.Fatal(err)
	}
	w.ask(login.Key, "Remember the walnut.")
	from := s.awaited(w)
	w.await(patience, func() bool { // its answer is recorded after its request
		var recorded struct{ Requests int }
		return json.Unmarshal([]byte(s.does("sessions", "show", from, "--json")), &recorded) == nil && recorded.Requests == 1
	})
	before := s.does("sessions", "export", from)

	var made struct {
		Session string `json:"client_session"`
		File    string
		Command string
		Warning string
	}
	if err := json.Unmarshal([]byte(s.does("resume", claudeSession, "--in", "codex", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(made.Command, " run codex -- resume "+made.Session) || !strings.Contains(made.Warning, "not in the path") {
		t.Errorf("the command is %s, the warning %q", made.Command, made.Warning)
	}
	if _, err := s.run("resume", from, "--in", "emacs"); err == nil || !strings.Contains(err.Error(), "claude-code, codex, pi, opencode") {
		t.Errorf("an unknown client: %v", err)
	}

	response, answer := w.post("/v1/responses", codexRequest(t, made.File), map[string]string{"Session-Id": made.Session, "User-Agent": "codex_cli_rs/0.171.0"})
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the first request of the continued session: status %d: %s", response.StatusCode, answer)
	}
	var shown struct {
		Client string
		Title  string
		Lanes  []struct{ Continues string }
	}
	w.await(patience, func() bool {
		said, err := s.run("sessions", "show", made.Session, "--json")
		return err == nil && json.Unmarshal([]byte(said), &shown) == nil && len(shown.Lanes) == 1
	})
	if shown.Client != "codex" || shown.Lanes[0].Continues != from || !strings.Contains(shown.Title, "walnut") {
		t.Errorf("the continued session is recorded as %+v, want it to continue %s", shown, from)
	}
	if said := s.does("sessions", "show", made.Session); !strings.Contains(said, "continues session "+from) {
		t.Errorf("sessions show says %s", said)
	}
	if page, _ := w.page(http.MethodGet, "/sessions/"+from, nil); !strings.Contains(page, `href="/sessions/`+from+`/continue"`) {
		t.Error("the session page does not lead to the ways to continue it")
	}
	page, _ := w.page(http.MethodGet, "/sessions/"+from+"/continue", nil)
	for _, target := range resume.Targets() {
		if command := "palimpsest resume " + from + " --in " + target.ID; !strings.Contains(page, command+"<") {
			t.Errorf("the page Continue does not offer %s", command)
		}
	}
	id := s.does("sessions", "list", "--json", "--client", "codex")
	if page, _ := w.page(http.MethodGet, "/sessions/"+idIn(t, id), nil); !strings.Contains(page, `href="/sessions/`+from+`"`) {
		t.Error("the page of the continued session does not lead to the one that it continues")
	}
	if page, _ := w.page(http.MethodGet, "/sessions/"+from, nil); !strings.Contains(page, `href="/sessions/`+idIn(t, id)+`"`) {
		t.Error("the page of the session does not lead to the one that continues it")
	}
	if said := s.does("sessions", "show", from); !strings.Contains(said, "continued in session "+idIn(t, id)) {
		t.Errorf("sessions show says %s", said)
	}
	if after := s.does("sessions", "export", from); after != before {
		t.Error("the session that was carried over has changed")
	}
}

// idIn returns the id of the first session of a list.
func idIn(t *testing.T, listed string) string {
	t.Helper()
	var sessions []struct{ ID string }
	if err := json.Unmarshal([]byte(listed), &sessions); err != nil || len(sessions) == 0 {
		t.Fatalf("no session in %s: %v", listed, err)
	}
	return sessions[0].ID
}

// codexRequest is the first request of Codex once it continues the session in a file.
func codexRequest(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	items := []any{map[string]any{"type": "message", "role": "developer", "content": "You are Codex."}}
	for line := range bytes.SplitSeq(bytes.TrimSpace(content), []byte("\n")) {
		var read struct {
			Type    string
			Payload json.RawMessage
		}
		if err := json.Unmarshal(line, &read); err != nil {
			t.Fatal(err)
		}
		if read.Type == "response_item" {
			items = append(items, read.Payload)
		}
	}
	items = append(items, map[string]any{"type": "message", "role": "user", "content": "What is to be remembered?"})
	body, err := json.Marshal(map[string]any{"model": "gpt-5.5", "store": false, "input": items})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
