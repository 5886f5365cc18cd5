package partitions_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"palimpsest/migrations/partitions"
	"palimpsest/pipeline/faulttest"
)

// S27: an index that a migration adds to the table alone is built in each partition while exchanges are recorded,
// also where an earlier attempt was cut off, and partitions that are made later have it.
func TestIndexesOfPartitionsAreBuiltWhileExchangesAreRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.keep(t, partitions.LeastDays)
	b.record(t, exchange(b.now))
	b.exec(t, "CREATE UNIQUE INDEX exchanges_position ON ONLY exchanges (workspace_id, id, position) WHERE position > 0",
		"CREATE UNIQUE INDEX exchanges_first_position ON exchanges_first (workspace_id, id, position) WHERE position > 0",
		"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'exchanges_first_position'::regclass")
	const valid = "SELECT indisvalid::text FROM pg_index WHERE indexrelid = 'exchanges_position'::regclass"
	if is := b.text(t, valid); is != "false" {
		t.Fatalf("the new index is valid: %s", is)
	}

	// A transaction that has written holds the build up, and recorders go on.
	writer, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := writer.Exec(t.Context(), "UPDATE exchanges SET position = 1"); err != nil {
		t.Fatal(err)
	}
	built := make(chan partitions.Done, 1)
	go func() {
		done, err := b.keeper(0).Keep(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Error(err)
		}
		built <- done
	}()
	faulttest.Until(t, "the job waits for the writer", func() bool {
		b.record(t, exchange(b.now))
		return b.text(t, "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'") == "1"
	})
	b.record(t, exchange(b.now))
	if err := writer.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := <-built
	if !slices.Equal(done.Built, []string{`"exchanges_20270203_position"`, `"exchanges_first_position"`}) || b.text(t, valid) != "true" {
		t.Errorf("did %+v, the index is valid: %s", done, b.text(t, valid))
	}
	if again := b.keep(t, 0); len(again.Built) > 0 {
		t.Errorf("built %v once more", again.Built)
	}
	b.now = time.Date(2027, 2, 1, 10, 0, 0, 0, time.UTC)
	b.keep(t, partitions.LeastDays)
	if has := b.text(t, "SELECT count(*)::text FROM pg_inherits WHERE inhparent = 'exchanges_position'::regclass"); has != "3" {
		t.Errorf("%s partitions have the index, want 3", has)
	}
}
