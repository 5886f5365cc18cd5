package ipc_test

import (
	"fmt"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
)

// E12: an epoch that someone asked for is made far below the target, once, and
// goes at least half way down.
func TestAnEpochIsMadeWhenItIsAskedFor(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Hello.")
	for i := range 20 {
		c.run(fmt.Sprintf("step %d", i), words(500))
	}
	lane := newLane(t, 200_000, small)
	if exchange, _ := send(t, lane, c.body()); exchange.Report.Compression != pipeline.None {
		t.Fatalf("compressed unasked: %+v", exchange.Report)
	}
	lane.Options.Order = &session.Order{At: time.Unix(1, 0)}
	exchange, _ := send(t, lane, c.body())
	report := exchange.Report
	if report.Compression != pipeline.Epoch || report.After > report.Before/2 {
		t.Errorf("report %+v", report)
	}
	wants(t, exchange, "completed", "manual")
	if exchange.Lane.Attempts.Fruitless != 0 {
		t.Errorf("it counts against the lane: %+v", exchange.Lane.Attempts)
	}
}

// E12: where nothing can be freed the order ends with a reason.
func TestAnOrderThatFreesNothingEnds(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 200_000)
	lane.Options.Order = &session.Order{At: time.Unix(1, 0)}
	exchange, _ := send(t, lane, (&talk{}).user("Hello.").run("ls", "ok").body())
	wants(t, exchange, "skipped", "nothing_to_free")
	if exchange.Report.Compression != pipeline.None {
		t.Errorf("report %+v", exchange.Report)
	}
}

// E12: what the instructions name is kept of the turns that are folded.
func TestInstructionsNameWhatIsKept(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Hello.")
	for i := range 12 {
		c.say(fmt.Sprintf("I looked at part %d of it. ", i) + words(200) + fmt.Sprintf(". It goes through parseHeader%d and its friends.", i)).user("Go on.")
	}
	folded := func(instructions string) []byte {
		lane := newLane(t, 200_000, small, func(c *ipc.Config) { c.DeepestLevel = 2 })
		lane.Options.Order = &session.Order{At: time.Unix(1, 0), Instructions: instructions}
		exchange, sealed := send(t, lane, c.body())
		wants(t, exchange, "completed", "manual")
		return sealed
	}
	holds(t, folded("Keep what was said of parseHeader3."), "parseHeader3")
	lacks(t, folded("Keep it short."), "parseHeader3")
}
