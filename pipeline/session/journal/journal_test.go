package journal_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
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

// secret stands in every message of these tests.
const secret = "nobody reads this on the disk"

// store takes what is given to it, unless it is to fail.
type store struct {
	session.Store

	fails     error
	only      int // number of the epoch that fails; 0: every one
	committed []session.Projection
	seen      []session.Update
	recorded  []session.Update
	refuses   error             // inserts
	taken     map[uuid.UUID]int // newest epoch of lanes of which another process has made it
	calls     *faulttest.Calls
	before    func() // optional; runs before an epoch is refused
}

// Inject implements session.Store.
func (s *store) Inject(context.Context, session.Update, []session.Insert) error { return s.refuses }

// Withdraw implements session.Store.
func (*store) Withdraw(context.Context, tenants.WorkspaceID, uuid.UUID, int) error { return nil }

// Commit implements session.Store.
func (s *store) Commit(_ context.Context, update session.Update, projection session.Projection) error {
	if s.fails != nil && (s.only == 0 || s.only == projection.Number) {
		if s.before != nil {
			s.before()
		}
		return s.fails
	}
	return s.calls.Do(func() error {
		if s.taken != nil && projection.Number <= s.taken[update.Lane] {
			return session.ErrOvertaken
		}
		if s.taken != nil {
			s.taken[update.Lane] = projection.Number
		}
		s.committed, s.seen = append(s.committed, projection), append(s.seen, update)
		return nil
	})
}

// Record implements session.Store.
func (s *store) Record(_ context.Context, _ tenants.Tenant, updates []session.Update) error {
	return s.calls.Do(func() error {
		s.recorded = append(s.recorded, updates...)
		return nil
	})
}

// bench is a journal with its store and clock.
type bench struct {
	*journal.Journal

	t         *testing.T
	store     *store
	dir       string
	now       time.Time
	most      int64
	keys      *archive.Keys
	peers     *journal.Peers
	overtaken []uuid.UUID
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, store: &store{}, dir: filepath.Join(t.TempDir(), "journal"), now: time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC), most: journal.DefaultBytes, keys: archivetest.Keys()}
	b.restart()
	return b
}

// restart opens the journal, as a program does that was ended.
func (b *bench) restart() {
	b.t.Helper()
	clock := func() time.Time { return b.now }
	opened, err := journal.New(journal.Config{
		Dir: b.dir, MaxBytes: b.most, Store: b.store, Keys: b.keys, Log: slog.New(slog.DiscardHandler), Now: clock, Peers: b.peers,
		IsAway: func(err error) bool { return errors.Is(err, tenants.ErrAway) },
		Outage: session.NewOutage(clock), Overtaken: func(lane uuid.UUID) { b.overtaken = append(b.overtaken, lane) },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Journal = opened
}

// epoch returns an epoch of a lane with everything that must come back as it was.
func epoch(lane uuid.UUID, number int) (session.Update, session.Projection) {
	at := time.Date(2026, 5, 1, 8, 59, 0, 0, time.UTC)
	raw := []byte(`{"role":"user",  "content":"<` + secret + `>"}`)
	return session.Update{
			Scope: session.Scope{Workspace: tenants.WorkspaceID{7}, APIKey: uuid.UUID{8}}, Session: uuid.UUID{9}, Lane: lane, At: at,
			Messages: session.Messages{Position: 3, Entries: []archive.Entry{{Index: 2, Raw: raw, Size: len(raw), Tokens: 5}}},
			Ahead:    &session.Ahead{SentAt: at, Due: at, Outline: []byte("x")},
		}, session.Projection{Number: number, Covers: 3, Reason: "target", At: at, Parts: []session.Part{
			{From: 0, To: 1, Level: 3, Raw: raw}, {From: 1, To: 2, Level: 3, Raw: []byte{}}, {From: 2, To: 3, Tokens: 5},
		}}
}

func (b *bench) commit(lane uuid.UUID, number int) error {
	seen, projection := epoch(lane, number)
	return b.Commit(b.t.Context(), seen, projection)
}

func (b *bench) files() []string {
	b.t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return files
}

// An epoch that the store does not take is on the disk, sealed, and goes to the store as it
// was once that is back, also after the program was ended.
func TestEpochWaitsOnTheDiskForTheStore(t *testing.T) {
	t.Parallel()
	b, lane := setup(t), uuid.UUID{1}
	b.store.fails = session.ErrAway
	if err := b.commit(lane, 4); err != nil {
		t.Fatal(err)
	}
	files := b.files()
	if len(files) != 1 || b.Stats().Entries != 1 || b.Stats().Kept != 1 {
		t.Fatalf("files %v, %+v", files, b.Stats())
	}
	content, err := os.ReadFile(files[0])
	if err != nil || bytes.Contains(content, []byte(secret[:8])) || int64(len(content)) < b.Stats().Bytes {
		t.Errorf("%d bytes on the disk (%v): %q", len(content), err, content)
	}
	b.Replay(t.Context())
	if len(b.files()) != 1 {
		t.Error("it is gone though the store did not take it")
	}

	b.restart()
	if err := b.commit(lane, 5); err != nil { // nobody has said yet that the store is back
		t.Fatal(err)
	}
	b.store.fails = nil
	if err := b.commit(lane, 6); err != nil || len(b.store.committed) != 0 {
		t.Errorf("an epoch overtakes those that wait: %v, %v", b.store.committed, err)
	}
	b.Replay(t.Context())
	for i, number := range []int{4, 5, 6} {
		seen, projection := epoch(lane, number)
		if i >= len(b.store.committed) || !reflect.DeepEqual(b.store.committed[i], projection) || !reflect.DeepEqual(b.store.seen[i], seen) {
			t.Fatalf("the store has\n%+v\n%+v", b.store.committed, b.store.seen)
		}
	}
	if files := b.files(); len(files) != 0 || b.Stats().Entries != 0 || b.Stats().Bytes != 0 {
		t.Errorf("files %v, %+v", files, b.Stats())
	}
	b.now = b.now.Add(time.Minute)
	if err := b.commit(lane, 7); err != nil || len(b.store.committed) != 4 {
		t.Errorf("with the store back: %d epochs, %v", len(b.store.committed), err)
	}
}

// Only what a store that is away would have taken is kept, and what cannot wait.
func TestRefusalsAndEpochsThatCanWaitAreNotKept(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{session.ErrOvertaken, session.ErrWarm, session.ErrPinned, errors.New("bad")} {
		b := setup(t)
		b.store.fails = refusal
		if err := b.commit(uuid.UUID{1}, 1); !errors.Is(err, refusal) || len(b.files()) != 0 {
			t.Errorf("%v: %v, files %v", refusal, err, b.files())
		}
	}
	b := setup(t)
	b.store.fails = session.ErrAway
	seen, projection := epoch(uuid.UUID{1}, 1)
	projection.Reason = session.ReasonIdle
	if err := b.Commit(t.Context(), seen, projection); !errors.Is(err, session.ErrAway) || len(b.files()) != 0 {
		t.Errorf("an idle one: %v, files %v", err, b.files())
	}
}

// Where another process was first, or the lane is in use with the provider's cache warm, the
// originals are stored all the same, and the lane is read again.
func TestOriginalsOfAnOvertakenEpochAreStored(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{session.ErrOvertaken, session.ErrWarm, session.ErrPinned} {
		b, lane := setup(t), uuid.UUID{1}
		b.store.fails = session.ErrAway
		if err := b.commit(lane, 1); err != nil {
			t.Fatal(err)
		}
		b.store.fails = refusal
		b.Replay(t.Context())
		if seen, _ := epoch(lane, 1); len(b.store.recorded) != 1 || !reflect.DeepEqual(b.store.recorded[0].Messages.Entries, seen.Messages.Entries) {
			t.Errorf("%v: recorded %+v", refusal, b.store.recorded)
		}
		if len(b.overtaken) != 1 || b.overtaken[0] != lane || len(b.files()) != 0 {
			t.Errorf("%v: lanes %v are read again, files %v", refusal, b.overtaken, b.files())
		}
	}
}

// Epochs of a lane are stored in their order: what comes behind one that is refused waits for it.
func TestEpochsOfALaneKeepTheirOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.store.fails = session.ErrAway
	for _, lane := range []uuid.UUID{{1}, {2}} {
		for number := range 2 {
			if err := b.commit(lane, 2*int(lane[0])+number); err != nil { // 2 and 3, 4 and 5
				t.Fatal(err)
			}
		}
	}
	b.store.fails, b.store.only = errors.New("not now"), 2
	b.Replay(t.Context())
	if got := b.store.committed; len(got) != 2 || got[0].Number != 4 || got[1].Number != 5 {
		t.Errorf("behind one that is refused the store has %+v", got)
	}
	b.store.fails = nil
	b.Replay(t.Context())
	if got := b.store.committed; len(got) != 4 || got[2].Number != 2 || got[3].Number != 3 {
		t.Errorf("once it is taken the store has %+v", got)
	}
}

// That a client leaves says nothing of the store: its epoch is not kept, and the next one does not
// wait.
func TestClientThatLeavesLeavesTheStoreAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	b.store.fails = session.ErrAway
	seen, projection := epoch(uuid.UUID{1}, 1)
	if err := b.Commit(gone, seen, projection); !errors.Is(err, session.ErrAway) || len(b.files()) != 0 {
		t.Errorf("%v, files %v", err, b.files())
	}
	b.store.fails = nil
	if err := b.commit(uuid.UUID{2}, 1); err != nil || len(b.store.committed) != 1 || len(b.files()) != 0 {
		t.Errorf("the next one: %v, %d are stored, files %v", err, len(b.store.committed), b.files())
	}
}

// What cannot be written takes no room, and nothing waits behind it.
func TestEpochThatCannotBeWrittenIsGivenUp(t *testing.T) {
	t.Parallel()
	b, lane := setup(t), uuid.UUID{1}
	b.store.fails = session.ErrAway
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	if err := b.commit(lane, 1); !errors.Is(err, session.ErrAway) || !errors.Is(err, os.ErrNotExist) || b.Stats() != (journal.Stats{}) {
		t.Errorf("%v, %+v", err, b.Stats())
	}
	b.store.fails = nil
	b.now = b.now.Add(time.Minute)
	if err := b.commit(lane, 2); err != nil || len(b.store.committed) != 1 {
		t.Errorf("the next one: %v, %d are stored", err, len(b.store.committed))
	}
}

// A journal has an end, and what it has no room for is said to be lost.
func TestJournalIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.most = 2000
	b.restart()
	b.store.fails = session.ErrAway
	var err error
	kept := 0
	for ; kept < 100; kept++ {
		if err = b.commit(uuid.UUID{byte(kept)}, 1); err != nil {
			break
		}
	}
	if kept == 0 || !errors.Is(err, journal.ErrFull) || !errors.Is(err, session.ErrAway) || b.Stats().Bytes > b.most || len(b.files()) != kept {
		t.Errorf("%d epochs in %d files, %+v: %v", kept, len(b.files()), b.Stats(), err)
	}
	b.store.fails = nil
	b.Replay(t.Context())
	if b.now = b.now.Add(time.Minute); b.commit(uuid.UUID{200}, 1) != nil || len(b.store.committed) != kept+1 {
		t.Errorf("%d epochs are stored", len(b.store.committed))
	}
}

// What cannot be read, or is never taken, does not keep the rest back.
func TestOneEntryDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.store.fails = session.ErrAway
	for i := range 3 {
		if err := b.commit(uuid.UUID{byte(i)}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(b.files()[0], []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "unfinished.new"), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.restart()
	b.store.fails = errors.New("the workspace is gone")
	b.Replay(t.Context())
	if len(b.files()) != 2 {
		t.Errorf("files %v", b.files())
	}
	b.now = time.Now().Add(8 * 24 * time.Hour) // files have the machine's time
	b.Replay(t.Context())
	if len(b.files()) != 0 || b.Stats().Entries != 0 {
		t.Errorf("files %v are never deleted", b.files())
	}
}
