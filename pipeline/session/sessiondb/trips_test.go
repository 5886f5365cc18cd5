package sessiondb_test

import (
	"testing"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants/tenantsdb"
)

// Others that record the same session wait from the second round trip on: a process that is
// slow must not hold them for one trip more for each table.
func TestRecordTakesFewRoundTrips(t *testing.T) {
	t.Parallel()
	f := setup(t)
	address, trips := dbtest.CountTrips(t, f.db.AppURL)
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: address, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	f.store, f.runner = sessiondb.New(db, archivetest.Keys()), db

	const most = 5 // joined lanes, stored messages, the lane's other ends, its chain, the end
	for range 2 {  // the first time the connection has the statements described
		c := f.conversationOf(3)
		c.record(t)
		c.say(`{"role":"assistant","content":"Done."}`, `{"role":"user","content":"Go on."}`)
		trips.Count()
		c.record(t)
	}
	if count := trips.Count(); count > most {
		t.Errorf("%d round trips, want at most %d", count, most)
	}
}

func TestReadingRowsTakesTwoRoundTrips(t *testing.T) {
	t.Parallel()
	f := setup(t)
	address, trips := dbtest.CountTrips(t, f.db.AppURL)
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: address, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	c := f.conversationOf(3)
	c.record(t)
	browser := sessiondb.New(db, archivetest.Keys()).Browser()

	for range 2 { // the first time the connection has the statement described
		trips.Count()
		if _, err := browser.Pins(t.Context(), f.scope.Workspace, c.lane); err != nil {
			t.Fatal(err)
		}
	}
	if count := trips.Count(); count > 2 { // the transaction's beginning with the query, and its end
		t.Errorf("%d round trips, want 2", count)
	}
}
