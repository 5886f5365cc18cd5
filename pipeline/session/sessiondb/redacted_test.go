package sessiondb_test

import (
	"testing"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// Recorded, committed or in one batch with others: pieces add up by kind, for their workspace.
func TestRedactedPiecesAreCountedByKind(t *testing.T) {
	t.Parallel()
	f := setup(t)
	addWorkspace(t, f.runner)
	c, other := f.newClient(), f.newClient()
	next := func(of *client, counts map[string]int) session.Update {
		of.say("a", "b")
		update := of.update()
		update.Increment.Redacted = counts
		return update
	}
	updates := []session.Update{next(c, map[string]int{"email": 2, "card": 1}), next(other, map[string]int{"email": 1}), next(other, nil)}
	if err := f.store.Record(t.Context(), f.scope.Workspace, updates); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Commit(t.Context(), next(c, map[string]int{"key": 4, "email": 1}), c.projection(1, 3)); err != nil {
		t.Fatal(err)
	}
	got, err := f.db.DB.Data.RedactionCounts(t.Context(), f.scope.Workspace)
	want := []tenants.RedactionCount{{Kind: tenants.RedactEmails, Found: 4}, {Kind: tenants.RedactCards, Found: 1}, {Kind: tenants.RedactKeys, Found: 4}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("counted %v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("counted %v, want %v", got, want)
		}
	}
	if others, err := f.db.DB.Data.RedactionCounts(t.Context(), addWorkspace(t, f.runner)); err != nil || len(others) != 0 {
		t.Errorf("another workspace has %v, %v", others, err)
	}
}
