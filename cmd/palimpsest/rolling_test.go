package main

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// S27: a new version comes up beside an older one on its database and migrates it. The
// older one serves on: what was begun before and what is new, also a conversation whose
// requests go now to the one and now to the other, and it logs no error. `make rolling`
// builds the older one and names it in OLDER; that what a migration leaves is enough for
// the version right before it, TestMigrationsLeaveTheVersionBeforeWhatItUses holds.
func TestOlderVersionServesOnWhileNewerComesUp(t *testing.T) {
	t.Parallel()
	older := os.Getenv("OLDER")
	if older == "" {
		t.Skip("no OLDER: make rolling COMMIT=… builds an older version and sets it")
	}
	database := dbtest.Empty(t).OwnerURL
	was := &child{t: t, binary: older, dir: t.TempDir(), databaseURL: database}
	is := &child{t: t, binary: buildtest.Palimpsest(t), dir: t.TempDir(), databaseURL: database}
	double := providertest.NewServer(t, providerdouble.Config{Key: providerKey, Window: 30_000, Count: counter(t).Count, KeepBodies: 1})
	body := generated(double, 120)
	envelope, ends := requests(t, anthropic.New(), body)

	was.start()
	w := &tenant{instance: &instance{t: t, double: double}}
	was.adopt(w)
	w.join("rolling")
	w.setPipelinef("ipc:\n  contextWindow: 30000\n")
	archived := 0
	send := func(step int) {
		t.Helper()
		prefix := envelope.Seal([]wire.Piece{{From: 0, To: ends[step]}})
		response, answer := w.post("/v1/messages", prefix, map[string]string{"X-Palimpsest-Session-Id": "rolling"})
		if response.StatusCode != http.StatusOK {
			t.Fatalf("request %d: status %d: %s", step, response.StatusCode, answer)
		}
		if response.Header.Get("X-Palimpsest-Archived") != "0" {
			archived = ends[step]
		}
	}
	for step := range len(ends) / 3 {
		send(step)
	}

	is.start()
	worked := workedSince(t, database)
	for step := len(ends) / 3; step < len(ends); step++ {
		[]*child{was, is}[step%2].adopt(w)
		send(step)
	}
	was.adopt(w)
	w.serves(anthropic.New(), body, archived)
	w.until(worked) // although the older version is still there
	late := &tenant{instance: w.instance}
	late.join("late")
	for range 3 {
		if response, answer := late.post("/v1/messages", envelope.Seal([]wire.Piece{{From: 0, To: ends[0]}}), nil); response.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %s", response.StatusCode, answer)
		}
	}
	said := was.log.String() // of being stopped it may tell
	was.stop()
	for line := range strings.Lines(said) {
		isWarning := strings.Contains(line, `"level":"WARN"`) && !strings.Contains(line, "set SMTP_URL")
		if !strings.Contains(line, `"level":"ERROR"`) && !isWarning {
			continue
		}
		t.Errorf("the older version says %s", line)
	}
	is.adopt(w)
	w.serves(anthropic.New(), body, ends[len(ends)-1])
	late.serves(anthropic.New(), body, 0)
	is.stop()
}

// workedSince returns a function that reports whether a periodic job that was enqueued after
// the call has been completed.
func workedSince(t *testing.T, ownerURL string) func() bool {
	t.Helper()
	owner, err := pgxpool.New(t.Context(), ownerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	var newest int64
	if err := owner.QueryRow(t.Context(), "SELECT coalesce(max(id), 0) FROM jobs.river_job").Scan(&newest); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		var done bool
		err := owner.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM jobs.river_job WHERE id > $1 AND kind = 'mail' AND state = 'completed')", newest).Scan(&done)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
}

// serves looks at what a workspace has, in the API and on the pages.
func (w *tenant) serves(codec wire.Codec, body []byte, messages int) {
	w.t.Helper()
	w.until(func() bool { // exchanges are recorded a moment after their answer
		return bytes.Contains(w.shown("/api/v1/sessions"), []byte(`"id"`))
	})
	w.checkOriginals(codec, body, messages)
	session := w.onlySession()
	for _, path := range []string{
		"/api/v1/usage", "/api/v1/keys", "/api/v1/members", "/api/v1/audit", "/api/v1/pipeline", "/api/v1/sessions/" + session,
		"/sessions", "/sessions/" + session, "/requests", "/keys", "/overview", "/providers", "/pipeline", "/patterns", "/members", "/audit", "/settings", "/account",
	} {
		w.shown(path)
	}
}
