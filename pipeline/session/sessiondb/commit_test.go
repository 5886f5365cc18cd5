package sessiondb_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"gorm.io/gorm"

	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

func TestTheSecondOfTwoEpochsWithOneNumberIsOvertaken(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	c.commit(t, c.projection(1, 4))
	c.say("written by the loser")
	err := f.store.Commit(t.Context(), c.update(), c.projection(1, 5))
	if !errors.Is(err, session.ErrOvertaken) {
		t.Fatalf("got %v, want session.ErrOvertaken", err)
	}
	if got := f.count(t, "archive_entries"); got != 6 {
		t.Errorf("%d entries, want 6: the loser's transaction left something", got)
	}
	if found := c.find(t); len(found.Projections) != 1 || found.Projections[0].Covers != 4 {
		t.Errorf("found %+v", found)
	}
}

// E10: of replicas that end an epoch at once one wins.
func TestConcurrentCommitsEndOneEpoch(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	seen, projection := c.update(), c.projection(1, 4)
	var replicas sync.WaitGroup
	results := make(chan error, 8)
	for range cap(results) {
		replicas.Go(func() { results <- f.store.Commit(context.WithoutCancel(t.Context()), seen, projection) })
	}
	replicas.Wait()
	close(results)
	won := 0
	for err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, session.ErrOvertaken) {
			t.Errorf("got %v, want session.ErrOvertaken", err)
		}
	}
	if won != 1 || f.count(t, "epochs") != 1 {
		t.Errorf("%d commits succeeded and %d epochs are stored", won, f.count(t, "epochs"))
	}
}

// E1, E2: what the archive has lost since a process stored it is in no projection: the
// lane is read again, and its messages are stored again.
func TestNoEpochStandsForMessagesThatWereDeleted(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]int{"all but the newest": 6, "a few of the first": 2, "all of them": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			c := f.conversationOf(6)
			c.commit(t, c.projection(1, 4))
			if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, c.session); err != nil {
				t.Fatal(err)
			}
			c.say("said before anybody told this process", "and this")
			c.recorded = known // as it remembers
			if err := f.store.Commit(t.Context(), c.update(), c.projection(2, 7)); !errors.Is(err, session.ErrOvertaken) {
				t.Fatalf("got %v, want session.ErrOvertaken", err)
			}
			for _, table := range []string{"sessions", "lanes", "epochs", "archive_entries", "archive_objects"} {
				if got := f.count(t, table); got != 0 {
					t.Errorf("%d rows in %s", got, table)
				}
			}
			c.recorded = 0
			c.commit(t, c.projection(1, 7))
			if found := c.find(t); found.Archived != 8 || len(found.Projections) != 1 {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// leaving is a runner whose client leaves when a transaction has done all its work and is
// about to be committed.
type leaving struct {
	batchdb.TxRunner

	leave context.CancelFunc
}

// InTenant implements batchdb.TxRunner.
func (l leaving) InTenant(ctx context.Context, tenant tenants.Tenant, do func(tx *gorm.DB) error) error {
	return l.TxRunner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		if err := do(tx); err != nil {
			return err
		}
		l.leave()
		return nil
	})
}

// E11: a client that leaves in the middle of an epoch leaves nothing of it, and the next
// request makes it.
func TestAbortedCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	seen, projection := c.update(), c.projection(1, 4)
	ctx, leave := context.WithCancel(t.Context())
	if err := sessiondb.New(leaving{f.runner, leave}, archivetest.Keys()).Commit(ctx, seen, projection); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	for _, table := range []string{"sessions", "lanes", "epochs", "archive_entries", "archive_objects"} {
		if got := f.count(t, table); got != 0 {
			t.Errorf("%d rows in %s", got, table)
		}
	}
	if err := f.store.Commit(t.Context(), seen, projection); err != nil {
		t.Fatal(err)
	}
	if found := c.find(t); len(found.Projections) != 1 || f.count(t, "archive_entries") != 6 {
		t.Errorf("found %+v", found)
	}
}
