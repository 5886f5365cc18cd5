package ipc_test

import (
	"fmt"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// E12: a pinned turn stays as the client sent it, and one that was compressed
// before comes back with the next epoch.
func TestAPinnedTurnIsNeverCompressed(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Hello.")
	for i := range 20 {
		c.run(fmt.Sprintf("step %d", i), fmt.Sprintf("result %d: ", i)+words(500))
	}
	lane := newLane(t, 10_000, small)
	lane.Options.Pins = []int{6}
	exchange, sealed := send(t, lane, c.body())
	if exchange.Report.Compression != pipeline.Epoch {
		t.Fatalf("no epoch: %+v", exchange.Report)
	}
	holds(t, sealed, c.messages[5], c.messages[6])
	lacks(t, sealed, c.messages[4], c.messages[8])

	lane.Options.Pins = []int{6, 9}
	for i := range 12 {
		c.run(fmt.Sprintf("more %d", i), words(500))
	}
	_, sealed = send(t, lane, c.body())
	holds(t, sealed, c.messages[5], c.messages[6], c.messages[9], c.messages[10])
	lacks(t, sealed, c.messages[8], c.messages[12])
}

// E12: a pinned session is compacted only if someone asks for it, and what is compacted stays so.
func TestPinnedSessionIsCompactedOnlyByAnOrder(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Hello.")
	grow := func() []byte {
		for i := range 20 {
			c.run(fmt.Sprintf("step %d", i), words(500))
		}
		return c.body()
	}
	lane := newLane(t, 10_000, small)
	lane.Options.Pinned = true
	exchange, sealed := send(t, lane, grow())
	if exchange.Report.Compression != pipeline.None || string(sealed) != string(c.body()) {
		t.Errorf("it was compacted: %+v", exchange.Report)
	}
	wants(t, exchange, "skipped", "session_pinned")

	lane.Options.Order = &session.Order{}
	exchange, _ = send(t, lane, grow())
	if exchange.Report.Compression != pipeline.Epoch {
		t.Fatalf("an order made no epoch: %+v", exchange.Report)
	}
	lane.Options.Order = nil
	before := exchange.Lane.Projection.Number
	if exchange, _ = send(t, lane, grow()); exchange.Report.Compression != pipeline.Replayed || exchange.Lane.Projection.Number != before {
		t.Errorf("after the order: %+v", exchange.Report)
	}
}
