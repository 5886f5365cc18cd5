package spool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/faulttest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// taker is a store that takes each record once, and a batch as a whole or not at all.
type taker struct {
	t     *testing.T
	calls *faulttest.Calls
	taken []string
}

// take is a spool.Handler.
func (k *taker) take(_ context.Context, of tenants.WorkspaceID, plain [][]byte) error {
	return k.calls.Do(func() error {
		for _, one := range plain {
			name, from, _ := strings.Cut(string(one), " of ")
			if from != of.String() {
				k.t.Errorf("record %s of workspace %s comes as one of %s", name, from, of)
			}
			if !slices.Contains(k.taken, name) {
				k.taken = append(k.taken, name)
			}
		}
		return nil
	})
}

// S20: records of two workspaces in two files are handed over, whichever call fails. One is deleted only
// once it is taken; the next replay takes the rest.
func TestReplayLosesNoRecordWhicheverCallFails(t *testing.T) {
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
	dir, later := t.TempDir(), time.Now().Add(14*24*time.Hour)
	var want []string
	for range 2 { // processes that were killed
		before := open(t, dir, spool.DefaultBytes, time.Now())
		for _, of := range []tenants.WorkspaceID{{7}, {8}} {
			name := fmt.Sprint("record ", len(want))
			if _, err := before.Put(t.Context(), of, written(name+" of "+of.String())); err != nil {
				t.Fatal(err)
			}
			want = append(want, name)
		}
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if found := files(t, dir); len(found) != 2 {
		t.Fatalf("files %v, want two", found)
	}
	now := time.Now
	if err := calls.Fault(); errors.Is(err, session.ErrAway) || errors.Is(err, tenants.ErrAway) {
		now = func() time.Time { return later } // no record is too old for a store that is away
	}
	s, err := spool.Open(spool.Config{
		Dir: dir, MaxBytes: spool.DefaultBytes, Keys: archive.NewKeys(archivetest.FailingDataKeys{Calls: calls}), Log: slog.New(slog.DiscardHandler), Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	store := &taker{t: t, calls: calls}
	s.Replay(t.Context(), store.take)
	if waiting := s.Stats().Records; len(store.taken)+waiting < len(want) {
		t.Errorf("%v are taken and %d wait, of %d", store.taken, waiting, len(want))
	}
	calls.Repair()
	s.Replay(t.Context(), store.take)
	slices.Sort(store.taken)
	if stats := s.Stats(); !slices.Equal(store.taken, want) || stats.Records != 0 || stats.Bytes != 0 || len(files(t, dir)) != 0 {
		t.Errorf("taken are %v; %+v in %d files", store.taken, stats, len(files(t, dir)))
	}
	s.Replay(t.Context(), func(_ context.Context, _ tenants.WorkspaceID, plain [][]byte) error {
		t.Errorf("%d records are handed over again", len(plain))
		return nil
	})
}

// A store that is away for the records of one workspace is not asked for those of another.
func TestStoreThatIsAwayIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{session.ErrAway, tenants.ErrAway} {
		s := open(t, t.TempDir(), spool.DefaultBytes, time.Now())
		for _, of := range []tenants.WorkspaceID{{1}, {2}} {
			record, err := s.Put(t.Context(), of, written("record"))
			if err != nil {
				t.Fatal(err)
			}
			record.Failed()
		}
		asked := 0
		s.Replay(t.Context(), func(context.Context, tenants.WorkspaceID, [][]byte) error {
			asked++
			return fault
		})
		if asked != 1 || s.Stats().Records != 2 {
			t.Errorf("%v: asked %d times, %+v", fault, asked, s.Stats())
		}
	}
}

// A record that the disk does not give back waits: it is not one that was never whole.
func TestRecordThatCannotBeReadForNowWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, spool.DefaultBytes, time.Now())
	put(t, s, "record").Failed()
	content, err := os.ReadFile(files(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(files(t, dir)[0], 0); err != nil {
		t.Fatal(err)
	}
	if got := replay(t, s, nil); len(got) > 0 || s.Stats().Records != 1 {
		t.Errorf("handed over are %q, %+v", got, s.Stats())
	}
	if err := os.WriteFile(files(t, dir)[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := replay(t, s, nil); !slices.Equal(got, []string{"record"}) || s.Stats().Records != 0 {
		t.Errorf("once it can be read: %q, %+v", got, s.Stats())
	}
}

// A file that is full is followed by another one, and each goes with its last record.
func TestFullFileIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, spool.DefaultBytes, time.Now())
	full := put(t, s, strings.Repeat("x", 16<<20))
	next := put(t, s, "next")
	if found := files(t, dir); len(found) != 2 {
		t.Fatalf("files %v, want two", found)
	}
	full.Done()
	if found := files(t, dir); len(found) != 1 || s.Stats().Records != 1 {
		t.Errorf("without the records of the first: %v, %+v", found, s.Stats())
	}
	next.Failed()
	if got := replay(t, s, nil); !slices.Equal(got, []string{"next"}) {
		t.Errorf("handed over are %q", got)
	}
}

// A record larger than a batch is handed over alone, and does not stop those behind it.
func TestRecordLargerThanABatchIsHandedOver(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), spool.DefaultBytes, time.Now())
	for _, size := range []int{1, 9 << 20, 1} {
		put(t, s, strings.Repeat("x", size)).Failed()
	}
	var sizes []int
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Replay(context.WithoutCancel(t.Context()), func(_ context.Context, _ tenants.WorkspaceID, plain [][]byte) error {
			sizes = append(sizes, len(bytes.Join(plain, nil)))
			return nil
		})
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the replay does not end")
	}
	if !slices.Equal(sizes, []int{1, 9 << 20, 1}) {
		t.Errorf("handed over are %v bytes", sizes)
	}
}

// Of two workspaces whose batches are refused, each is tried record by record.
func TestRefusedRecordHoldsUpNoOtherWorkspace(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), spool.DefaultBytes, time.Now())
	for _, of := range []tenants.WorkspaceID{{1}, {2}} {
		for _, text := range []string{"one", "poison", "two"} {
			record, err := s.Put(t.Context(), of, written(text))
			if err != nil {
				t.Fatal(err)
			}
			record.Failed()
		}
	}
	var taken []string
	s.Replay(t.Context(), func(_ context.Context, of tenants.WorkspaceID, plain [][]byte) error {
		if slices.ContainsFunc(plain, func(one []byte) bool { return string(one) == "poison" }) {
			return errors.New("refused")
		}
		for _, one := range plain {
			taken = append(taken, fmt.Sprintf("%d %s", of[0], one))
		}
		return nil
	})
	if want := []string{"1 one", "1 two", "2 one", "2 two"}; !slices.Equal(taken, want) || s.Stats().Records != 2 {
		t.Errorf("taken are %v, %d wait", taken, s.Stats().Records)
	}
}
