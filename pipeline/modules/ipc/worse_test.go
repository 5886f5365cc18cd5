package ipc_test

import (
	"testing"

	"palimpsest/pipeline/session"
)

// B11: an epoch is held against what the client sent, not only against what would go out
// without it: where modules have put more into the prompt than an epoch can free, the
// result would be larger than the original, and none is made.
func TestEpochIsNeverLargerThanTheOriginal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		inserted int // o200k tokens
		made     bool
	}{
		"frees more than was put in": {500, true},
		"frees less than was put in": {9_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := longTalk(24)
			last := len(c.messages) - 1
			lane := newLane(t, 0, small)
			lane.Options.Inserts = []session.Insert{{
				Number: 1, Module: "rehydrator", Message: last, Text: "note", Tokens: test.inserted,
			}}
			for i := range 18 { // little can be freed beside these
				lane.Options.Pins = append([]int{last - 2*i}, lane.Options.Pins...)
			}
			plain, _ := newLane(t, 0, small).Send(t, c.body())
			lane.Options.Limit = plain.Original() + test.inserted - 100
			exchange, _ := lane.Send(t, c.body())
			if made := exchange.Lane.Projection != nil; made != test.made {
				t.Errorf("an epoch is made: %t, want %t: %+v", made, test.made, exchange.Report)
			}
			if !test.made {
				wants(t, exchange, "rejected", "result is not smaller")
			}
		})
	}
}
