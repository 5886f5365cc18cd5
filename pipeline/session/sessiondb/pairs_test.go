package sessiondb_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/faulttest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// faulty is a database of which a transaction of some workspaces fails.
type faulty struct {
	batchdb.TxRunner

	calls *faulttest.Calls
	of    []tenants.WorkspaceID
}

func (r faulty) InTenant(ctx context.Context, tenant tenants.Tenant, work func(tx *gorm.DB) error) error {
	run := func() error { return r.TxRunner.InTenant(ctx, tenant, work) }
	if !slices.Contains(r.of, tenant.Workspace()) {
		return run()
	}
	return r.calls.Do(run)
}

// A batch with the answers of two requests stores both.
func TestBothAnswersOfABatchAreStored(t *testing.T) {
	t.Parallel()
	f := setup(t)
	one, two := f.conversationOf(1).update(), f.conversationOf(1).update()
	one.Messages.Answer, two.Messages.Answer = []byte("an answer"), []byte("another answer")
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{one, two}); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]byte{one.Messages.Answer, two.Messages.Answer} {
		if raw, err := f.archive.Object(t.Context(), f.scope.Workspace, sha256.Sum256(want)); err != nil || string(raw) != string(want) {
			t.Errorf("%q: %q, %v", want, raw, err)
		}
	}
}

// All replicas hear of both lanes of a session that is deleted, and of the newest of two inserts.
func TestReplicasHearOfBothLanesAndOfTheNewestInsert(t *testing.T) {
	t.Parallel()
	f := setup(t)
	told := make(chan string, 10)
	listener := f.db.DB.NewListener(slog.New(slog.DiscardHandler))
	for _, channel := range []string{sessiondb.Channel, sessiondb.InsertChannel} {
		listener.Handle(channel, func(payload string) { told <- payload }, nil)
	}
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Stop)
	first, second := f.conversationOf(3), f.conversationOf(2)
	second.session = first.session
	second.record(t)
	if err := f.store.Inject(t.Context(), first.update(), []session.Insert{first.insert(1, 1, "[one]"), first.insert(2, 2, "[two]")}); err != nil {
		t.Fatal(err)
	}
	if got, want := <-told, fmt.Sprintf("%s/%s/2", f.scope.Workspace, first.lane); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, first.session); err != nil {
		t.Fatal(err)
	}
	got, want := []string{<-told, <-told}, []string{}
	for _, lane := range []uuid.UUID{first.lane, second.lane} {
		want = append(want, fmt.Sprintf("%s/%s/0", f.scope.Workspace, lane))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("told %s, want %s", got, want)
	}
}

// S31: a sweep over two workspaces with two expired sessions each deletes no session of which it says that it has
// not, and the next one deletes the rest, whichever transaction fails.
func TestSweepGoesOnWhicheverTransactionFails(t *testing.T) {
	t.Parallel()
	f := setup(t)
	faulttest.Walk(t, faulttest.Err, func(t *testing.T, calls *faulttest.Calls) {
		one, two := *f, *f
		for _, of := range []*fixture{&one, &two} {
			of.scope.Workspace = addWorkspace(t, f.runner)
			f.keep(t, of.scope.Workspace, 1)
			for range 2 {
				seen := of.conversationOf(2).update()
				seen.At = time.Now().AddDate(0, 0, -9)
				if err := f.store.Record(t.Context(), of.scope.Workspace, []session.Update{seen}); err != nil {
					t.Fatal(err)
				}
			}
		}
		sweep := func(calls *faulttest.Calls) (int, error) {
			return sessiondb.New(faulty{f.runner, calls, []tenants.WorkspaceID{one.scope.Workspace, two.scope.Workspace}}, archivetest.Keys()).Cleaner().Sweep(t.Context(), time.Now(), 100)
		}
		deleted, err := sweep(calls)
		left := one.count(t, "sessions") + two.count(t, "sessions")
		if (err == nil) != (calls.Fault() == nil) || deleted > 4-left || err == nil && left > 0 {
			t.Errorf("deleted %d, %d are left, %v", deleted, left, err)
		}
		calls.Repair()
		if _, err := sweep(calls); err != nil {
			t.Error(err)
		}
		for _, of := range []*fixture{&one, &two} {
			if rows := of.count(t, "sessions") + of.count(t, "lanes") + of.count(t, "archive_objects"); rows > 0 {
				t.Errorf("%d rows are left", rows)
			}
		}
	})
}
