package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
)

// S27: the primary of the database is killed while requests are recorded, and its replica
// takes its place. Every request is answered, by one request to the provider each; the
// program goes on, records again, and nothing stands twice.
func TestKilledPrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	pair := dbtest.NewPair(t)
	i := startOn(t, pair.OwnerURL, providerdouble.Config{})
	w := i.tenant("failover")
	database, err := pgxpool.New(t.Context(), pair.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.Close)
	count := func(of string) int {
		t.Helper()
		var found int
		if err := database.QueryRow(t.Context(), "SELECT count(*) FROM "+of).Scan(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	recorded := func(least int) {
		t.Helper()
		w.until(func() bool { return count("exchanges") >= least })
	}

	clients := flow(t, w.key, i.program.addr)
	clients.more()
	recorded(20)
	pair.KillPrimary(t)
	clients.more()
	pair.Promote(t)
	database.Reset() // the test's own connections are gone too
	promoted := time.Now()
	before := count("exchanges")
	recorded(before + 20)
	t.Logf("%d more requests were recorded %s after the promotion", 20, time.Since(promoted).Round(time.Millisecond))
	clients.stop()

	sent := int(clients.sent.Load())
	if clients.failed.Load() > 0 || len(i.double.Requests()) != sent {
		t.Errorf("%d of %d requests failed, %d reached the provider", clients.failed.Load(), sent, len(i.double.Requests()))
	}
	i.shutdown() // what waits is recorded
	rows, ids := count("exchanges"), count("(SELECT DISTINCT id FROM exchanges) one")
	if rows != ids || rows > sent || rows < 40 {
		t.Errorf("%d requests stand in %d rows with %d ids", sent, rows, ids)
	}
	if counted := count("rollups_now r, generate_series(1, r.exchanges) WHERE minutes = 1440 AND NOT part"); counted != rows {
		t.Errorf("%d requests of %d are counted", counted, rows)
	}
	if counted := count("exchanges e JOIN sessions s ON s.workspace_id = e.workspace_id AND s.id = e.session_id"); counted != rows {
		t.Errorf("%d of %d rows belong to a session", counted, rows)
	}
}
