package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"palimpsest/cmd/palimpsest/credential"
)

const claude = "0f0e3b1a-1111-4222-8333-444455556666"

// recorded is a server with one session of a main thread and a subagent.
type recorded struct {
	requests []map[string]any // the newest first
	asked    []string
	away     bool
	now      time.Time
}

func (r *recorded) app(t *testing.T) *App {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(server.Close)
	client := newHTTP()
	client.Transport = &http.Transport{}
	t.Cleanup(client.CloseIdleConnections)
	return &App{
		In: strings.NewReader(""), Out: new(bytes.Buffer), Err: io.Discard, Cache: filepath.Join(t.TempDir(), "status"), HTTP: client,
		Now: func() time.Time { return r.now }, Refresh: func(string) error { return nil },
		Logins: Logins{Load: func() (credential.Login, error) { return credential.Login{Server: server.URL, Key: "k"}, nil }},
	}
}

func (r *recorded) serve(w http.ResponseWriter, request *http.Request) {
	r.asked = append(r.asked, request.URL.Path)
	one := map[string]any{
		"id": "s1", "name": claude, "lanes": []any{
			map[string]any{"id": "m", "kind": "main", "warm_until": r.now.Add(190 * time.Second), "epochs": []any{
				map[string]any{"tokens_before": 142_000, "tokens_after": 31_000, "at": r.now.Add(-time.Minute)},
			}},
			map[string]any{"id": "a", "kind": "subagent", "epochs": []any{}},
		},
	}
	switch {
	case r.away:
		w.WriteHeader(http.StatusBadGateway)
	case request.URL.Path == "/api/v1/sessions":
		write(w, http.StatusOK, map[string]any{"data": []any{map[string]any{"id": "s1", "name": claude}}})
	case request.URL.Path == "/api/v1/sessions/s1":
		write(w, http.StatusOK, one)
	case request.URL.Path == "/api/v1/requests":
		// Pages of two.
		var at int
		_, _ = fmt.Sscan(request.URL.Query().Get("cursor"), &at) // 0 on the first page
		end := min(at+2, len(r.requests))
		answer := map[string]any{"data": r.requests[at:end]}
		if end < len(r.requests) {
			answer["next_cursor"] = strconv.Itoa(end)
		}
		write(w, http.StatusOK, answer)
	}
}

func (r *recorded) add(id, lane string, before, after, net int) {
	r.requests = append([]map[string]any{{"id": id, "lane": lane, "tokens_before": before, "tokens_after": after, "net_micro_usd": net}}, r.requests...)
}

func TestStateTellsSubagentsApartAndCountsEachRequestOnce(t *testing.T) {
	t.Parallel()
	r := &recorded{now: time.Now()}
	app := r.app(t)
	r.add("1", "m", 100_000, 100_000, 500_000)
	r.add("2", "a", 9_000, 9_000, 10_000)
	r.add("3", "m", 142_000, 31_000, 740_000)
	for _, more := range []bool{false, true} {
		want := "context 142k · sent 31k · 1 compaction · saved $1.24 · 1 subagent: 0 compactions, saved $0.010 · warm 3:10\n" +
			"142k → 31k tokens, originals kept, undo: palimpsest sessions undo s1"
		if more {
			r.add("4", "a", 9_500, 9_500, 20_000)
			want = strings.Replace(want, "$0.010", "$0.030", 1)
		}
		if err := app.refresh(t.Context(), claude); err != nil {
			t.Fatal(err)
		}
		if got := app.states().kept(claude).line(r.now); got != want {
			t.Errorf("the line is\n%s\nwant\n%s", got, want)
		}
	}
	later := r.now.Add(4 * time.Minute)
	if got := app.states().kept(claude).line(later); !strings.HasSuffix(got, "· cold") {
		t.Errorf("later the line is %s", got)
	}
}

func TestStatusLineKeepsItsFiguresWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	r := &recorded{now: time.Now()}
	app := r.app(t)
	r.add("1", "m", 1000, 1000, 0)
	if err := app.refresh(t.Context(), claude); err != nil {
		t.Fatal(err)
	}
	r.away, r.now = true, r.now.Add(time.Minute)
	if err := app.refresh(t.Context(), claude); err != nil {
		t.Fatal(err)
	}
	if got := app.states().kept(claude).line(r.now); !strings.Contains(got, "context 1k") || !strings.Contains(got, "1:00 old: the server answered 502") {
		t.Errorf("the line is %s", got)
	}
	app.Logins.Load = func() (credential.Login, error) { return credential.Login{}, credential.ErrNone }
	if err := app.refresh(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if got := app.states().kept("other").line(r.now); got != "palimpsest: not logged in, run palimpsest login" {
		t.Errorf("the line is %s", got)
	}
}

// silent is an input that nobody closes.
type silent struct{ end chan struct{} }

func (s silent) Read([]byte) (int, error) { <-s.end; return 0, io.EOF }

func TestStatusLineAsksNoServer(t *testing.T) {
	t.Parallel()
	r := &recorded{now: time.Now()}
	app := r.app(t)
	refreshed := 0
	app.Refresh = func(string) error { refreshed++; return errors.New("no process") }
	app.Logins.Load = func() (credential.Login, error) { t.Error("the login is read"); return credential.Login{}, nil }
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	for name, input := range map[string]io.Reader{
		"session": strings.NewReader(`{"session_id":"` + claude + `"}`), "again": strings.NewReader(`{"session_id":"` + claude + `"}`),
		"no session": strings.NewReader(`{}`), "no JSON": strings.NewReader("x"), "a path": strings.NewReader(`{"session_id":"../../x"}`), "silent": silent{end},
	} {
		app.In = input
		command := app.statusLineCommand()
		command.SetArgs(nil)
		if err := command.ExecuteContext(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(r.asked) > 0 || refreshed != 2 {
		t.Errorf("asked %v, refreshed %d times", r.asked, refreshed)
	}
}

// However many status lines and readers run at once, one reads the session, and a dead one blocks no other.
func TestOneProcessReadsASessionAtATime(t *testing.T) {
	t.Parallel()
	files := stateFiles{t.TempDir()}
	if err := os.WriteFile(files.file(claude, ".lock"), nil, 0o600); err != nil { // of a process that died
		t.Fatal(err)
	}
	const readers = 20
	held := make(chan func(), readers)
	for range readers {
		go func() { held <- files.lock(claude) }()
	}
	var unlock func()
	for range readers {
		one := <-held
		if one != nil && unlock != nil {
			t.Fatal("two readers at once")
		}
		if one != nil {
			unlock = one
		}
	}
	if unlock == nil {
		t.Fatal("a dead reader keeps others out")
	}
	unlock()
	if files.lock(claude) == nil {
		t.Error("a reader that is done keeps others out")
	}
}

func TestTextOfModelsMovesNoCursor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a\x1b[2Jb": "a [2Jb", "a\nb\tc": "a b c", "é→": "é→", "a\u202eb": "a b", "a\u009bb": "a b"} {
		if got := oneLine(text); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}

func TestServerIsReachedByTLSUnlessItIsHere(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"palimpsest.example": "https://palimpsest.example", "https://a.example/x/": "https://a.example/x", "http://127.0.0.1:8080": "http://127.0.0.1:8080",
		"http://localhost:1": "http://localhost:1", "http://a.example": "", "ftp://a": "", "http://": "", "http://127.0.0.1.evil.example": "",
	} {
		if got, err := serverOf(typed); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v", typed, got, err)
		}
	}
}
