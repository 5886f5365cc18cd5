package terminal

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"palimpsest/cmd/palimpsest/credential"
)

// turned is a server with a session of so many turns on two pages, of which the first ones are shortened.
func turned(t *testing.T, turns, shortened int) (app *App, changes *[]string) {
	t.Helper()
	changes = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, _ := io.ReadAll(r.Body) // what is lost is missed below
			*changes = append(*changes, r.Method+" "+r.URL.RequestURI()+" "+string(body))
			write(w, http.StatusOK, map[string]any{})
			return
		}
		switch strings.TrimPrefix(r.URL.Path, "/api/v1/sessions") {
		case "":
			write(w, http.StatusOK, map[string]any{"data": []any{map[string]any{"id": "s1", "name": claude}}})
		case "/s1":
			write(w, http.StatusOK, map[string]any{"id": "s1", "pinned_at": "2026-11-30T01:00:00Z", "lanes": []any{map[string]any{"id": "m", "kind": "main"}, map[string]any{"id": "a", "kind": "subagent"}}})
		case "/s1/pins":
			write(w, http.StatusOK, map[string]any{"data": []any{map[string]any{"lane": "m", "message": 3}, map[string]any{"lane": "m", "message": 9}}})
		case "/s1/turns":
			var at int
			_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &at) // 0 on the first page
			var data []turnJSON
			for i := at; i < turns && len(data) < (turns+1)/2; i++ {
				turn := turnJSON{From: 2 * i}
				if i < shortened {
					turn.Level = 1
				}
				data = append(data, turn)
			}
			answer := map[string]any{"data": data}
			if end := at + len(data); end < turns {
				answer["next_cursor"] = strconv.Itoa(end)
			}
			write(w, http.StatusOK, answer)
		}
	}))
	t.Cleanup(server.Close)
	client := newHTTP()
	client.Transport = &http.Transport{}
	t.Cleanup(client.CloseIdleConnections)
	return &App{
		Out: new(bytes.Buffer), Err: io.Discard, HTTP: client, Now: time.Now,
		Logins: Logins{Load: func() (credential.Login, error) { return credential.Login{Server: server.URL, Key: "k"}, nil }},
	}, changes
}

func (a *App) sessions(t *testing.T, arguments ...string) error {
	t.Helper()
	command := a.sessionsCommand()
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(arguments)
	return command.ExecuteContext(t.Context())
}

func TestUndoPinsEachShortenedTurnAndOrdersACompaction(t *testing.T) {
	t.Parallel()
	app, changes := turned(t, 5, 4)
	if err := app.sessions(t, "undo", claude); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`POST /api/v1/sessions/s1/pins?lane=m {"message":0}`, `POST /api/v1/sessions/s1/pins?lane=m {"message":2}`,
		`POST /api/v1/sessions/s1/pins?lane=m {"message":4}`, `POST /api/v1/sessions/s1/pins?lane=m {"message":6}`,
		`POST /api/v1/sessions/s1/compact?lane=m {}`,
	}
	if !slices.Equal(*changes, want) {
		t.Errorf("sent are %q", *changes)
	}
}

func TestUndoOfTooManyTurnsChangesNothing(t *testing.T) {
	t.Parallel()
	app, changes := turned(t, 300, 199)
	if err := app.sessions(t, "undo", claude); err == nil || !strings.Contains(err.Error(), "at most 200 can be pinned") || len(*changes) > 0 {
		t.Errorf("%v, sent are %v", err, *changes)
	}
}

func TestReleaseEndsOnlyTheNamedPins(t *testing.T) {
	t.Parallel()
	app, changes := turned(t, 5, 0)
	if err := app.sessions(t, "release", claude, "9"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"DELETE /api/v1/sessions/s1/pins/9?lane=m "}; !slices.Equal(*changes, want) {
		t.Errorf("sent are %v", *changes)
	}
}

func TestWholeSessionIsPinnedAndReleased(t *testing.T) {
	t.Parallel()
	app, changes := turned(t, 5, 0)
	for _, what := range []string{"pin", "release"} {
		if err := app.sessions(t, what, claude); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"PUT /api/v1/sessions/s1/pin ", "DELETE /api/v1/sessions/s1/pin ",
		"DELETE /api/v1/sessions/s1/pins/3?lane=m ", "DELETE /api/v1/sessions/s1/pins/9?lane=m ",
	}
	if !slices.Equal(*changes, want) {
		t.Errorf("sent are %q", *changes)
	}
}
