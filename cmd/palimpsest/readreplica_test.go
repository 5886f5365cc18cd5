package main

import (
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
)

// The lists of requests come from the replica that DATABASE_READ_URL names, one request from the
// database, and all of it from there once the replica is gone.
func TestPagesReadFromTheReplica(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	pair := dbtest.NewPair(t)
	i := startOn(t, pair.OwnerURL, providerdouble.Config{})
	i.shutdown()
	i.config.Storage.DatabaseReadURL = pair.ReplicaURL
	i.boot()
	w := i.tenant("reader")
	database, err := pgxpool.New(t.Context(), pair.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.Close)
	recorded := func(want int) {
		t.Helper()
		w.until(func() bool {
			var found int
			err := database.QueryRow(t.Context(), "SELECT count(*) FROM exchanges").Scan(&found)
			return err == nil && found == want
		})
	}
	listed := func() int {
		t.Helper()
		var list struct {
			Requests []struct{} `json:"data"`
		}
		w.call(http.MethodGet, "/api/v1/requests", nil, http.StatusOK, &list)
		return len(list.Requests)
	}
	send := func() (id string) {
		t.Helper()
		response, content := w.post("/v1/messages", []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`), nil)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %s", response.StatusCode, content)
		}
		return response.Header.Get("X-Palimpsest-Request-Id")
	}
	send()
	w.until(func() bool { return listed() == 1 })

	pair.Replay(t, false)
	id := send()
	recorded(2)
	if found := listed(); found != 1 {
		t.Errorf("%d requests are listed, want the one that the replica has", found)
	}
	w.call(http.MethodGet, "/api/v1/requests/"+id, nil, http.StatusOK, nil)
	pair.Replay(t, true)
	w.until(func() bool { return listed() == 2 })

	pair.StopReplica(t)
	if found := listed(); found != 2 {
		t.Errorf("%d requests are listed without the replica, want both", found)
	}
}
