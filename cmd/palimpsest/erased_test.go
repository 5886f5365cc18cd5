package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/migrations/dbtest"
)

// found reports whether what an end user has said is found by a search.
func (s speaker) found() bool {
	s.t.Helper()
	var hits struct{ Data []any }
	s.call(http.MethodGet, "/api/v1/search?q="+url.QueryEscape(s.secret()), nil, http.StatusOK, &hits)
	return len(hits.Data) > 0
}

// sessions counts the sessions of an end user.
func (s speaker) sessions() int {
	s.t.Helper()
	var list struct{ Data []any }
	s.call(http.MethodGet, fmt.Sprintf("/api/v1/sessions?end_user=user-%d", s.number), nil, http.StatusOK, &list)
	return len(list.Data)
}

// S52: a backup from after an erasure has nothing of the end user. One from before has all of it, and what it
// brings back is erased again.
func TestBackupsKeepAnErasureAsTheDocsSay(t *testing.T) {
	t.Parallel()
	i := startOn(t, dbtest.New(t).OwnerURL, providerdouble.Config{})
	w := i.tenant("backups")
	gone, staying := speaker{w, 1}, speaker{w, 2}
	for _, s := range []speaker{gone, staying} {
		s.say(1, fmt.Sprintf("My %s was stolen. Its code is %s, please remember it.", s.thing(), s.secret()), "I have noted the code.", "Thanks.")
		w.until(s.found)
	}
	source, dirs := i.config, map[string]string{}
	for _, when := range []string{"before", "after"} {
		dirs[when] = filepath.Join(t.TempDir(), when)
		if said, err := runs(t, source, "backup", dirs[when]); err != nil {
			t.Fatalf("backup: %v\n%s", err, said)
		}
		if when == "before" {
			w.call(http.MethodDelete, "/api/v1/users/user-1", nil, http.StatusOK, nil)
		}
	}
	for _, when := range []string{"after", "before"} {
		i.shutdown()
		i.config.Storage.DatabaseURL, i.config.Storage.DataDir = dbtest.Empty(t).OwnerURL, t.TempDir()
		if said, err := runs(t, i.config, "restore", dirs[when]); err != nil {
			t.Fatalf("restore: %v\n%s", err, said)
		}
		i.boot()
		if staying.sessions() != 1 || !staying.found() {
			t.Errorf("%s: the other end user has %d sessions", when, staying.sessions())
		}
		if is := gone.sessions() == 1 && gone.found(); is != (when == "before") {
			t.Errorf("%s: of the erased %d sessions are there", when, gone.sessions())
		}
	}
	w.call(http.MethodDelete, "/api/v1/users/user-1", nil, http.StatusOK, nil)
	if gone.sessions() != 0 || gone.found() {
		t.Error("what a backup brought back isn't erased")
	}
}

// S52: of an end user's requests that a killed process has left on its disk, one answered while the database was away
// and one under way, figures are recorded if the end user was erased before the process runs again.
func TestErasedEndUserDoesNotComeBackFromAKilledProcess(t *testing.T) {
	t.Parallel()
	database, arrived := dbtest.New(t), make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "Wait for me.") {
			close(arrived)
			<-r.Context().Done()
			return
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, `{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":10}}`)
	}))
	t.Cleanup(provider.Close)
	killed := &child{t: t, binary: buildtest.Palimpsest(t), dir: t.TempDir(), databaseURL: database.OwnerURL}
	other := &child{t: t, binary: killed.binary, dir: t.TempDir(), databaseURL: database.OwnerURL}
	killed.start()
	w := &tenant{instance: &instance{t: t, double: &providertest.Server{URL: provider.URL}}}
	w.config.Storage.DatabaseURL = database.OwnerURL
	killed.adopt(w)
	w.join("erased")
	var created struct{ Secret string }
	w.call(http.MethodPost, "/api/v1/keys", map[string]any{"name": "held", "scopes": []string{"proxy"}, "budget_month_usd": 100}, http.StatusCreated, &created)
	w.key = created.Secret
	s := speaker{w, 1}
	ask := func(text string) int {
		body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":100,"metadata":{"user_id":"user-1"},"messages":[{"role":"user","content":%q}]}`, text)
		response, _ := w.post("/v1/messages", []byte(body), nil)
		return response.StatusCode
	}
	if status := ask("Hello."); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	recorded := func(of string) int { return count(t, database.Owner(t), "SELECT count(*) FROM exchanges WHERE "+of) }
	w.until(func() bool { return recorded("session_id IS NOT NULL") == 1 })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url("/v1/messages"),
		strings.NewReader(`{"model":"claude-sonnet-4-5","max_tokens":100,"metadata":{"user_id":"user-1"},"messages":[{"role":"user","content":"Wait for me."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.key)
	left := make(chan struct{})
	go func() {
		defer close(left)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-arrived
	w.allowConnections(false)
	if status := ask("Its code is " + s.secret() + "."); status != http.StatusOK {
		t.Errorf("with the database away: status %d", status)
	}
	_ = killed.command.Process.Signal(syscall.SIGKILL)
	_ = killed.command.Wait()
	<-left
	w.allowConnections(true)
	database.Owner(t).Reset() // its connections were ended, too

	other.start()
	other.adopt(w)
	if already := recorded("true"); already != 1 {
		t.Fatalf("%d exchanges are recorded before the killed process runs again: the test sees nothing", already)
	}
	w.call(http.MethodDelete, "/api/v1/users/user-1", nil, http.StatusOK, nil)
	other.stop()
	killed.start()
	killed.adopt(w)
	w.until(func() bool { return recorded("true") == 3 })
	if s.found() || s.sessions() != 0 {
		t.Error("the end user is back")
	}
	killed.stop()
	if named := recorded("end_user IS NOT NULL OR session_id IS NOT NULL OR answer IS NOT NULL"); named != 0 {
		t.Errorf("%d exchanges have more than figures", named)
	}
	if paid := recorded("cost_microusd > 0"); paid != 3 {
		t.Errorf("%d exchanges of 3 have their cost", paid)
	}
	if objects := count(t, database.Owner(t), "SELECT count(*) FROM archive_objects"); objects != 0 {
		t.Errorf("%d objects are in the archive", objects)
	}
}
