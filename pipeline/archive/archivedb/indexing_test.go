package archivedb_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/conversation"
)

// Processes that index at once do different lanes, and a lane that a killed one had claimed is
// taken up once its claim has run out.
func TestClaimedLanesAreIndexedByOneProcess(t *testing.T) {
	t.Parallel()
	f := setup(t)
	lanes := []uuid.UUID{f.lane}
	for range 99 {
		lanes = append(lanes, f.addLane(t, time.Now()))
	}
	for _, lane := range lanes {
		f.in(t, func(tx *gorm.DB) error { return f.archive.Put(tx, f.workspace, f.session, lane, entries(talk()...)) })
	}
	var parsed atomic.Int64
	index := func() *archivedb.Index {
		return archivedb.NewIndex(f.archive, func(format conversation.Format, raw []byte) (conversation.Message, error) {
			parsed.Add(1)
			return parse(format, raw)
		})
	}
	f.in(t, func(tx *gorm.DB) error { // by a process that is killed
		return tx.Exec("UPDATE archive_unindexed SET claimed_until = now() + interval '1 minute' WHERE lane_id = ?", lanes[50]).Error
	})
	done := make(chan int, 4)
	for range cap(done) {
		go func() {
			total := 0
			for {
				some, err := index().IndexPending(t.Context(), 7)
				if err != nil {
					t.Error(err)
				}
				if total += some; some == 0 || total > 100*len(talk()) {
					done <- total
					return
				}
			}
		}()
	}
	total := 0
	for range cap(done) {
		total += <-done
	}
	if want := 99 * len(talk()); total != want || parsed.Load() != int64(want) {
		t.Errorf("%d messages were indexed and %d read, want %d: each once, and none of the claimed lane", total, parsed.Load(), want)
	}
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE archive_unindexed SET claimed_until = now() - interval '1 second'").Error
	})
	if some, err := index().IndexPending(t.Context(), 7); err != nil || some != len(talk()) || f.count(t, "archive_unindexed") != 0 {
		t.Errorf("after its claim: %d messages, %v", some, err)
	}
}

// A workspace with a long queue has another wait for no more lanes of its own than the other has.
func TestWorkspacesTakeTurnsToBeIndexed(t *testing.T) {
	t.Parallel()
	busy := setup(t)
	for range 60 {
		lane := busy.addLane(t, time.Now())
		busy.in(t, func(tx *gorm.DB) error {
			return busy.archive.Put(tx, busy.workspace, busy.session, lane, entries(talk()...))
		})
	}
	quiet := []*fixture{busy.sibling(t), busy.sibling(t)}
	for _, f := range quiet {
		for _, lane := range []uuid.UUID{f.lane, f.addLane(t, time.Now())} {
			f.in(t, func(tx *gorm.DB) error { return f.archive.Put(tx, f.workspace, f.session, lane, entries(talk()...)) })
		}
	}
	if done, err := busy.index().IndexPending(t.Context(), 6); err != nil || done != 6*len(talk()) {
		t.Fatalf("%d messages, %v", done, err)
	}
	for _, f := range append(quiet, busy) {
		if got := f.count(t, "archive_indexed"); got != 2 {
			t.Errorf("%d lanes of a workspace are indexed, want two of each of three", got)
		}
	}
}

// A lane longer than one look takes is given back, and goes on with the next look.
func TestALongLaneTakesTurns(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := make([][]byte, 6_000)
	for i := range messages {
		messages[i] = say("user", fmt.Sprintf("message%d", i))
	}
	f.put(t, entries(messages...)...)
	index := f.index()
	first, err := index.IndexPending(t.Context(), 10)
	if err != nil || first == 0 || first >= len(messages) {
		t.Fatalf("%d messages of %d, %v", first, len(messages), err)
	}
	if next, err := index.IndexPending(t.Context(), 10); err != nil || first+next != len(messages) || f.count(t, "archive_unindexed") != 0 {
		t.Errorf("then %d messages, %v", next, err)
	}
}
