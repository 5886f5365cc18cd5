package prompt_test

import (
	"bytes"
	"context"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// pair returns the benches of two processes on one store that never hear of each other's epochs.
func pair(t *testing.T, window int) (one, other *bench) {
	t.Helper()
	store := session.NewMemory()
	one, other = newBenchOn(t, store, window), newBenchOn(t, store, window)
	other.scope = one.scope
	return one, other
}

// E3: a process that compacts a lane that another one has compacted in the meantime goes on from that
// compaction. Without it, the prompt would be too long for the provider.
func TestCompactionContinuesWhereAnotherProcessWasFirst(t *testing.T) {
	t.Parallel()
	one, other := pair(t, 12_000)
	c := begun("claude-sonnet-4-5").filled(2, 100)
	one.send(c.body())
	other.send(c.body())
	one.epoch(c.filled(12, 1_000).body())

	next := other.send(c.filled(1, 1_000).body())
	report := next.Exchange.Report
	if report.Compression == pipeline.None || report.After > next.Exchange.Limits.Limit {
		t.Errorf("the prompt of the process that knew less goes out with %d tokens: %+v", report.After, report)
	}
	again := one.send(c.body())
	if string(again.Body) != string(next.Body) {
		t.Errorf("the two send %d and %d bytes of the same request", len(again.Body), len(next.Body))
	}
}

// again is notes whose text goes into every prompt.
type again struct{ *notes }

func (a again) Process(ctx context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	a.next = "[note]"
	return a.notes.Process(ctx, exchange)
}

// A prompt that starts again holds an insert once: nothing of the first try is stored.
func TestInsertGoesIntoAPromptThatStartsAgainOnce(t *testing.T) {
	t.Parallel()
	one, other := pair(t, 12_000)
	c := begun("claude-sonnet-4-5").filled(2, 100)
	one.send(c.body())
	other.send(c.body())
	one.epoch(c.filled(7, 900).body()) // above the target, and below the limit

	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	other.writer.Chain = pipeline.NewChain(ipc.New(counter.Message), again{&notes{name: "rehydrator", placement: pipeline.PlacementTurn}})
	next := other.send(c.filled(1, 100).body())
	if count, injected := bytes.Count(next.Body, []byte("[note]")), next.Exchange.Report.Injected; count != 1 || injected["rehydrator"] != 2 {
		t.Errorf("the prompt holds the insert %d times, and %v is reported", count, injected)
	}
}

// B6, E3: a refused prompt is shortened although another process has compacted its lane in the meantime.
func TestEmergencyContinuesWhereAnotherProcessWasFirst(t *testing.T) {
	t.Parallel()
	one, other := pair(t, 40_000)
	c := begun("claude-sonnet-4-5").filled(14, 1_000)
	refused := other.send(c.body())
	one.writer.Window = 12_000
	one.epoch(c.body())

	shrunk, ok := other.writer.Shrink(t.Context(), refused, wire.Overflow{Tokens: 16_000, Window: 15_000})
	if !ok {
		t.Fatal("not shrunk")
	}
	if after := shrunk.Exchange.Size(shrunk.Exchange.Lane.Projection); after > 15_000 || len(shrunk.Body) >= len(refused.Body) {
		t.Errorf("%d tokens in %d bytes, %d bytes before", after, len(shrunk.Body), len(refused.Body))
	}
}
