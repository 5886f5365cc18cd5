package spool_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/api/spool"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

var workspace = tenants.WorkspaceID{7}

func open(t *testing.T, dir string, most int64, now time.Time) *spool.Spool {
	t.Helper()
	opened, err := spool.Open(spool.Config{
		Dir: dir, MaxBytes: most, Keys: archivetest.Keys(), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func put(t *testing.T, s *spool.Spool, text string) spool.Record {
	t.Helper()
	record, err := s.Put(t.Context(), workspace, written(text))
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// written returns what writes a record.
func written(text string) func(*bytes.Buffer) error {
	return func(buffer *bytes.Buffer) error {
		_, err := buffer.WriteString(text)
		return err
	}
}

// replay returns what a replay hands over, joined where it comes together; refuse may refuse it.
func replay(t *testing.T, s *spool.Spool, refuse map[string]error) (handed []string) {
	t.Helper()
	s.Replay(t.Context(), func(_ context.Context, of tenants.WorkspaceID, plain [][]byte) error {
		if of != workspace {
			t.Errorf("a record of workspace %s", of)
		}
		handed = append(handed, string(bytes.Join(plain, []byte("+"))))
		for _, one := range plain {
			if err := refuse[string(one)]; err != nil {
				return err
			}
		}
		return nil
	})
	return handed
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRecordsThatAreNotDoneAreHandedOverByTheNextProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir, spool.DefaultBytes, time.Now())
	put(t, first, "one")
	put(t, first, "two").Done()
	put(t, first, "three")
	put(t, first, "four").Failed()
	// A process beside it leaves alone what it works on.
	if beside := open(t, dir, spool.DefaultBytes, time.Now()); len(replay(t, beside, nil)) != 0 {
		t.Error("records of a process that runs are handed over by another one")
	}
	if err := first.Close(); err != nil { // as when it is killed: the files stay
		t.Fatal(err)
	}
	content, err := os.ReadFile(files(t, dir)[0])
	if err != nil || bytes.Contains(content, []byte("three")) {
		t.Errorf("the record is not sealed, %v", err)
	}

	next := open(t, dir, spool.DefaultBytes, time.Now())
	if got := replay(t, next, nil); !slices.Equal(got, []string{"one+two+three+four"}) {
		t.Errorf("handed over are %q", got)
	}
	if stats := next.Stats(); stats.Records != 0 || stats.Bytes != 0 || stats.Handed != 4 || len(files(t, dir)) != 0 {
		t.Errorf("%+v, and %d files", stats, len(files(t, dir)))
	}
	if got := replay(t, next, nil); len(got) != 0 {
		t.Errorf("handed over again are %q", got)
	}
}

func TestAFileGoesWithItsLastRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, spool.DefaultBytes, time.Now())
	for range 3 {
		put(t, s, "stored").Done()
	}
	if info, err := os.Stat(files(t, dir)[0]); err != nil || info.Size() != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	if err := s.Close(); err != nil || len(files(t, dir)) != 0 {
		t.Errorf("%d files are left, %v", len(files(t, dir)), err)
	}
}

func TestARecordThatWasNotWrittenWholeIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string][]byte{
		"a part of the length": {0, 0}, "a length alone": {0, 0, 0, 200}, "a part of a record": append([]byte{0, 0, 0, 200}, make([]byte, 40)...), "noise": bytes.Repeat([]byte{255}, 90),
	} {
		dir := t.TempDir()
		s := open(t, dir, spool.DefaultBytes, time.Now())
		put(t, s, "whole")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(files(t, dir)[0], os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(tail); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		if got := replay(t, open(t, dir, spool.DefaultBytes, time.Now()), nil); !slices.Equal(got, []string{"whole"}) {
			t.Errorf("behind it %s: handed over are %q", name, got)
		}
	}
}

func TestWhatTheStoreRefusesWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, spool.DefaultBytes, time.Now())
	for _, text := range []string{"one", "poison", "two"} {
		put(t, s, text).Failed()
	}
	if got := replay(t, s, map[string]error{"one": session.ErrAway}); !slices.Equal(got, []string{"one+poison+two"}) {
		t.Errorf("of a store that is away more is asked: %q", got)
	}
	refusing := map[string]error{"poison": errors.New("refused")}
	if got := replay(t, s, refusing); !slices.Equal(got, []string{"one+poison+two", "one", "poison", "two"}) {
		t.Errorf("handed over are %q", got)
	}
	if got := replay(t, s, refusing); !slices.Equal(got, []string{"poison"}) {
		t.Errorf("what is refused holds up others, or is not tried again: %q", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	later := open(t, dir, spool.DefaultBytes, time.Now().Add(8*24*time.Hour))
	replay(t, later, map[string]error{"one": refusing["poison"], "poison": refusing["poison"], "two": refusing["poison"]})
	if stats := later.Stats(); stats.Records != 0 || len(files(t, dir)) != 0 {
		t.Errorf("after eight days %+v waits in %d files", stats, len(files(t, dir)))
	}
}

// Many records are handed over in parts, so that the store and the memory can take them.
func TestManyRecordsAreHandedOverInParts(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), spool.DefaultBytes, time.Now())
	for range 250 {
		put(t, s, "x").Failed()
	}
	for range 3 {
		put(t, s, strings.Repeat("y", 5<<20)).Failed()
	}
	var sizes []int
	for _, part := range replay(t, s, nil) {
		sizes = append(sizes, strings.Count(part, "+")+1)
	}
	if !slices.Equal(sizes, []int{100, 100, 51, 1, 1}) || s.Stats().Records != 0 {
		t.Errorf("parts of %v records; %d wait", sizes, s.Stats().Records)
	}
}

func TestAFullSpoolTakesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), 200, time.Now())
	first := put(t, s, "fits")
	if _, err := s.Put(t.Context(), workspace, written(strings.Repeat("x", 150))); !errors.Is(err, spool.ErrFull) {
		t.Errorf("error %v", err)
	}
	first.Done()
	if _, err := s.Put(t.Context(), workspace, written(strings.Repeat("x", 100))); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}
