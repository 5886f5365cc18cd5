package sessiondb_test

import (
	"testing"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// The ends of a lane's requests come furthest first, and those of other lanes do not.
func TestEndsOfLaneAreReadFurthestFirst(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.conversationOf(2)
	other.record(t)
	c := f.newClient()
	for _, message := range []string{`{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`, `{"role":"user","content":"c"}`} {
		c.say(message)
		c.record(t)
	}
	ends, err := f.store.Ends(t.Context(), f.scope.Workspace, c.lane, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := []session.End{{Head: c.chain[3], Position: 3}, {Head: c.chain[2], Position: 2}}
	if len(ends) != 2 || ends[0] != want[0] || ends[1] != want[1] {
		t.Errorf("ends %v, want %v", ends, want)
	}
	if ends, err := f.store.Ends(t.Context(), tenants.NewWorkspaceID(), c.lane, 2); err != nil || len(ends) != 0 {
		t.Errorf("in another workspace: %v, %v", ends, err)
	}
}

// A replica that did not know a session while the store was away has all of its messages to
// record, also those that the lane has: they are the lane's, and nothing is stored twice.
func TestExchangeOfAssumedLaneIsRecordedInIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(3)
	c.record(t)
	c.say(`{"role":"assistant","content":"said elsewhere"}`, `{"role":"user","content":"goes on"}`)
	c.recorded = 0
	c.record(t)
	if lanes, entries := f.count(t, "lanes"), f.count(t, "archive_entries"); lanes != 1 || entries != 5 {
		t.Errorf("%d lanes with %d messages, want one with 5", lanes, entries)
	}
	if found := c.find(t); found.Lane != c.lane || found.Archived != 5 {
		t.Errorf("lane %s with %d messages archived", found.Lane, found.Archived)
	}
}
