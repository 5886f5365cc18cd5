package sessiondb_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/session"
)

// Compacted lanes that were used lately are listed, the newest first: those that go on with another's
// epochs too, and neither what was never compacted nor what rests nor side calls.
func TestActiveLanesAreThoseThatWereCompactedAndUsed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	since := time.Now().Add(-time.Hour)
	never := f.conversationOf(3)
	never.record(t)

	rests := f.conversationOf(3)
	rests.commit(t, rests.projection(1, 2))
	if _, err := f.db.Owner(t).Exec(t.Context(), "UPDATE sessions SET last_at = $1 WHERE id = $2", since.Add(-time.Minute), rests.session); err != nil {
		t.Fatal(err)
	}

	first := f.conversationOf(3)
	first.commit(t, first.projection(1, 2))
	first.commit(t, first.projection(2, 2))
	fork := *first
	fork.lane = uuid.New()
	side := *first
	side.lane = uuid.New()
	for _, one := range []*client{&fork, &side} {
		seen := one.update()
		seen.Ancestry = session.Ancestry{Parent: first.lane, ForkAt: 3, Inherited: 2}
		if one == &side {
			seen.Kind = session.Side
		}
		if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
			t.Fatal(err)
		}
	}

	want := []session.Active{{Workspace: f.scope.Workspace, Lane: fork.lane, Number: 2}, {Workspace: f.scope.Workspace, Lane: first.lane, Number: 2}}
	for _, most := range []int{10, 1} {
		active, err := f.store.Active(t.Context(), f.scope.Workspace, since, most)
		if err != nil || len(active) != min(most, len(want)) {
			t.Fatalf("of at most %d: %+v, %v; want %+v", most, active, err, want)
		}
		for i, one := range active {
			if one.At.Before(since) {
				t.Errorf("lane %s was used last at %s", one.Lane, one.At)
			}
			if one.At = (time.Time{}); one != want[i] {
				t.Errorf("place %d: %+v, want %+v", i, one, want[i])
			}
		}
	}
	if active, err := f.store.Active(t.Context(), addWorkspace(t, f.runner), since, 10); err != nil || len(active) > 0 {
		t.Errorf("of another workspace: %+v, %v", active, err)
	}
}
