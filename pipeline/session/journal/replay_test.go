package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/faulttest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/journal"
	"palimpsest/tenants"
)

// waiting returns the epochs that wait on the disk, as "lane/number", by their files.
func (b *bench) waiting(epochs map[string]string) (waiting []string) {
	b.t.Helper()
	for _, file := range b.files() {
		waiting = append(waiting, epochs[file])
	}
	return waiting
}

// has reports whether the store has the messages of an epoch, by a commit or a record.
func (s *store) has(name string) bool {
	for i, one := range s.seen {
		if nameOf(one.Lane, s.committed[i].Number) == name {
			return true
		}
	}
	return slices.ContainsFunc(s.recorded, func(one session.Update) bool { return nameOf(one.Lane, one.Messages.Position) == name })
}

func nameOf(lane uuid.UUID, number int) string { return fmt.Sprintf("%d/%d", lane[0], number) }

// S5: an entry is deleted only once the store has its messages, whichever call fails. The next replay
// ends as one without a fault. Another process has made the second lane's epoch first.
func TestReplayLosesNoEntryWhicheverCallFails(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{faulttest.Err, session.ErrAway, tenants.ErrAway} {
		t.Run(fault.Error(), func(t *testing.T) {
			t.Parallel()
			faulttest.Walk(t, fault, testReplay)
		})
	}
}

func testReplay(t *testing.T, calls *faulttest.Calls) {
	t.Helper()
	b := setup(t)
	b.store.fails = session.ErrAway
	epochs := map[string]string{}
	for _, one := range []struct{ lane, number byte }{{1, 1}, {2, 1}, {1, 2}, {3, 1}} {
		seen, projection := epoch(uuid.UUID{one.lane}, int(one.number))
		seen.Messages.Position = int(one.number)
		if err := b.Commit(t.Context(), seen, projection); err != nil {
			t.Fatal(err)
		}
		for _, file := range b.files() {
			if epochs[file] == "" {
				epochs[file] = nameOf(seen.Lane, projection.Number)
			}
		}
	}
	b.store.fails, b.store.calls, b.store.taken = nil, calls, map[uuid.UUID]int{{2}: 1}
	b.keys = archive.NewKeys(archivetest.FailingDataKeys{Calls: calls})
	b.restart()
	b.Replay(t.Context())
	waiting := b.waiting(epochs)
	for _, name := range epochs {
		if !b.store.has(name) && !slices.Contains(waiting, name) {
			t.Errorf("epoch %s is neither in the store nor on the disk", name)
		}
	}
	if len(b.overtaken) > 0 && len(b.store.recorded) == 0 {
		t.Error("a lane is read again before its messages are recorded")
	}
	calls.Repair()
	b.Replay(t.Context())
	for _, name := range epochs {
		if !b.store.has(name) {
			t.Errorf("epoch %s is not in the store after the next replay", name)
		}
	}
	var committed []string
	for i, one := range b.store.seen {
		committed = append(committed, nameOf(one.Lane, b.store.committed[i].Number))
	}
	slices.Sort(committed)
	if !slices.Equal(committed, []string{"1/1", "1/2", "3/1"}) || !slices.Contains(b.overtaken, uuid.UUID{2}) {
		t.Errorf("committed %v, overtaken %v", committed, b.overtaken)
	}
	if len(b.files()) > 0 || b.Stats().Entries != 0 || b.Stats().Bytes != 0 {
		t.Errorf("files %v, %+v", b.files(), b.Stats())
	}
}

// An epoch counts as kept only once its file is flushed and has its name. A pipe is a file that cannot be
// flushed, and a folder a name that cannot be taken.
func TestEpochIsNotKeptBeforeItsFileIsDurable(t *testing.T) {
	t.Parallel()
	for name, obstruct := range map[string]func(t *testing.T, place string){
		"not flushed": func(t *testing.T, place string) {
			t.Helper()
			if err := syscall.Mkfifo(place+".new", 0o600); err != nil {
				t.Fatal(err)
			}
			reader, err := os.OpenFile(place+".new", os.O_RDWR, 0) // else a writer waits for one
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = reader.Close() })
		},
		"not renamed": func(t *testing.T, place string) {
			t.Helper()
			if err := os.Mkdir(place, 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		b, lane := setup(t), uuid.UUID{1}
		b.store.fails = session.ErrAway
		seen, _ := epoch(lane, 1)
		obstruct(t, filepath.Join(b.dir, fmt.Sprintf("%020d_%s_%s.epoch", 0, seen.Scope.Workspace, lane)))
		if err := b.commit(lane, 1); !errors.Is(err, session.ErrAway) || b.Stats() != (journal.Stats{}) {
			t.Errorf("%s: %v, %+v", name, err, b.Stats())
		}
		if left, err := filepath.Glob(filepath.Join(b.dir, "*.new")); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
		if err := b.commit(lane, 2); err != nil || b.Stats().Entries != 1 {
			t.Errorf("the next epoch, %s: %v, %+v", name, err, b.Stats())
		}
	}
}

// An entry outlives a store that is away for longer than a refused entry is kept: a program that was stopped
// for a fortnight may start before its database does, and may be stopped again.
func TestEntryOutlivesALongOutage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ fault, keys error }{
		"the store is away":      {fault: session.ErrAway},
		"the database is away":   {fault: fmt.Errorf("%w: no route", tenants.ErrAway)},
		"the keys are away":      {keys: fmt.Errorf("%w: no route", tenants.ErrAway)},
		"the program is stopped": {fault: context.Canceled},
	} {
		b, lane := setup(t), uuid.UUID{1}
		b.store.fails = session.ErrAway
		if err := b.commit(lane, 1); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		b.store.fails = test.fault
		if errors.Is(test.fault, context.Canceled) {
			b.store.before = stop
		}
		if test.keys != nil {
			b.keys = archive.NewKeys(archivetest.FailingDataKeys{Calls: faulttest.FailAt(1, test.keys)})
		}
		b.now = time.Now().Add(14 * 24 * time.Hour) // files have the machine's time
		b.restart()
		b.Replay(ctx)
		stop()
		b.store.fails, b.keys = nil, archivetest.Keys()
		b.restart()
		b.Replay(t.Context())
		if len(b.store.committed) != 1 || len(b.files()) != 0 {
			t.Errorf("%s: %d epochs are stored, files %v", name, len(b.store.committed), b.files())
		}
	}
}
