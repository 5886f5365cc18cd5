package ipc_test

import (
	"fmt"
	"testing"

	"palimpsest/pipeline"
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
