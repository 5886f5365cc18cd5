package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/cmd/palimpsest/credential"
	"palimpsest/cmd/palimpsest/terminal"
)

// shell is a person's terminal.
type shell struct {
	*terminal.App

	t    *testing.T
	out  *syncBuffer // of all commands
	env  map[string]string
	kept credential.Store
	asks []string // sessions that the status line has had read
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{App: terminal.New("test"), t: t, out: &syncBuffer{}, env: map[string]string{}, kept: credential.Store{Dir: t.TempDir()}}
	s.In, s.Out, s.Err, s.Cache = strings.NewReader(""), s.out, s.out, filepath.Join(t.TempDir(), "status")
	s.Logins = terminal.Logins{Load: s.kept.Load, Save: s.kept.Save, Delete: s.kept.Delete}
	s.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	s.Refresh = func(session string) error { s.asks = append(s.asks, session); return nil }
	s.Env = func(name string) string { return s.env[name] }
	home := t.TempDir()
	s.Here = func() (connect.Place, error) {
		return connect.Place{OS: runtime.GOOS, Home: home, Project: home, Env: s.Env, Program: func(string) string { return "" }}, nil
	}
	return s
}

// run runs a command and returns what it says.
func (s *shell) run(arguments ...string) (string, error) {
	s.t.Helper()
	before := len(s.out.String())
	root := &cobra.Command{Use: "palimpsest", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(s.Commands()...)
	root.SetArgs(arguments)
	err := root.ExecuteContext(s.t.Context())
	return s.out.String()[before:], err
}

// does is run for a command that must succeed.
func (s *shell) does(arguments ...string) string {
	s.t.Helper()
	said, err := s.run(arguments...)
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", arguments, err, said)
	}
	return said
}

// allows has the person type the code that the shell shows, while it waits.
func (s *shell) allows(w *tenant) {
	code := regexp.MustCompile(`[B-Z]{4}-[B-Z]{4}`)
	s.Sleep = func(ctx context.Context, _ time.Duration) error {
		typed := code.FindString(s.out.String())
		page, status := w.page(http.MethodPost, "/device/check", url.Values{"code": {typed}})
		chosen := regexp.MustCompile(`<option value="([0-9a-f-]{36})"`).FindStringSubmatch(page)
		if status == http.StatusOK && chosen != nil {
			w.page(http.MethodPost, "/device/decide", url.Values{"code": {typed}, "decision": {"allow"}, "workspace": {chosen[1]}, "expiry": {""}})
		}
		return ctx.Err()
	}
}

// page sends a form to the dashboard.
func (w *tenant) page(method, path string, form url.Values) (string, int) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url(path), strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, cookie := range w.cookies {
		request.AddCookie(cookie)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content), response.StatusCode
}

const (
	claudeSession = "0f0e3b1a-1111-4222-8333-444455556666"
	patience      = 30 * time.Second
)

// ask sends a request as Claude Code does.
func (w *tenant) ask(key, text string) {
	w.t.Helper()
	body := `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"` + text + `"}]}`
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url("/v1/messages"), strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("X-Claude-Code-Session-Id", claudeSession)
	if response, content := w.do(request); response.StatusCode != http.StatusOK {
		w.t.Fatalf("status %d: %s", response.StatusCode, content)
	}
}

// S53: the whole way, with the real program.
func TestTerminalIsUsedFromLoginToLogout(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("ant")
	s := newShell(t)
	if _, err := s.run("status"); !errors.Is(err, credential.ErrNone) {
		t.Fatalf("before the login: %v", err)
	}
	s.allows(w)
	if said := s.does("login", w.url(""), "--name", "ada's laptop"); !strings.Contains(said, "workspace ant") {
		t.Fatalf("the login says %s", said)
	}
	login, err := s.kept.Load()
	if err != nil || login.KeyID == "" {
		t.Fatalf("kept is %+v, %v", login, err)
	}

	w.ask(login.Key, "Remember the walnut.")
	id := s.awaited(w)
	for _, step := range [][2]string{
		{"sessions list", id}, {"sessions show " + claudeSession, "Remember the walnut."}, {"status", "0 compactions · saved $0.00"},
		{"sessions undo " + id, "Nothing to undo"}, {"sessions pin " + id + " 0", "Pinned 1 message"}, {"sessions release " + id, "Released 1 message"},
		{"sessions export " + id, "walnut"}, {"sessions list --json", `"name": "` + claudeSession},
	} {
		if said := s.does(strings.Fields(step[0])...); !strings.Contains(said, step[1]) {
			t.Errorf("%s says %s", step[0], said)
		}
	}
	if _, err := s.run("sessions", "show", "nothing"); err == nil || !strings.Contains(err.Error(), "no session has this id") {
		t.Errorf("an unknown session: %v", err)
	}

	s.statusLine(id)
	said := s.does("logout")
	if _, err := s.kept.Load(); !errors.Is(err, credential.ErrNone) || !strings.Contains(said, "Logged out") {
		t.Errorf("after the logout: %v, %s", err, said)
	}
	w.awaitRevoked(login.Key)
}

// awaited returns the id of the session once it is recorded.
func (s *shell) awaited(w *tenant) string {
	s.t.Helper()
	var listed []struct{ ID string }
	w.await(patience, func() bool {
		if err := json.Unmarshal([]byte(s.does("sessions", "list", "--json")), &listed); err != nil {
			s.t.Fatal(err)
		}
		return len(listed) > 0
	})
	return listed[0].ID
}

// statusLine asks for the status line before and after the state was read.
func (s *shell) statusLine(id string) {
	s.t.Helper()
	input := `{"session_id":"` + claudeSession + `","model":{"id":"claude-sonnet-4-5"}}`
	s.In = strings.NewReader(input)
	if said := s.does("statusline"); !strings.Contains(said, "no request yet") || len(s.asks) != 1 || s.asks[0] != claudeSession {
		s.t.Fatalf("before it was read: %s, read are %v", said, s.asks)
	}
	s.does("status", "--refresh", claudeSession)
	s.In = strings.NewReader(input)
	if said := s.does("statusline"); !strings.Contains(said, "context ") || len(s.asks) != 1 {
		s.t.Fatalf("after it was read: %s, read are %v", said, s.asks)
	}
	if id == claudeSession {
		s.t.Fatal("the client's id is the server's")
	}
}

func (w *tenant) awaitRevoked(key string) {
	w.t.Helper()
	w.await(patience, func() bool {
		request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url("/api/v1/me"), http.NoBody)
		if err != nil {
			w.t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		response, _ := w.do(request)
		return response.StatusCode == http.StatusUnauthorized
	})
}
