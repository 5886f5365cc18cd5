package ipc_test

import (
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
)

// A compaction at the target is put off if the threads of the kind that have ended were hardly longer, and
// not if they were much longer, or too few to tell.
func TestCompactionIsPutOffBeforeAThreadEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		threads, more int
		held          bool
	}{
		"they had one more request": {8, 2, true}, "they had many more": {8, 80, false}, "too few": {7, 2, false}, "none": {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUsed(t, 40_000, small, func(c *ipc.Config) { c.PreserveLastTurns = 8 })
			c := longTalk(26) // about 0.65 of the window
			u.send(t, 0, c)
			c.run("ls", words(5000))
			prepare := u.Prepare
			u.Prepare = func(exchange *pipeline.Exchange) {
				prepare(exchange)
				for range test.threads {
					exchange.Lane.Lives = append(exchange.Lane.Lives, len(c.messages)+test.more)
				}
			}
			exchange := u.send(t, time.Minute, c)
			if held := exchange.Lane.Projection == nil; held != test.held || held && u.attempts.Reason != "ends_soon" {
				t.Errorf("held: %v for %q, want %v: %+v", held, u.attempts.Reason, test.held, exchange.Report)
			}
		})
	}
}
