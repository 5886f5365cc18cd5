package session_test

import (
	"testing"

	"palimpsest/pipeline/session"
)

// B1: a reported size counts for a fork only if the fork shares the whole prompt that
// it was reported of.
func TestForkInheritsAnchorOfSharedMessagesOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		position, want int
	}{
		"before the fork": {2, 70},
		"at the fork":     {3, 70},
		"beyond the fork": {4, 0},
		"at the end":      {5, 0},
	} {
		b := setup(t)
		trunk := b.send(t, session.Hint{Name: "run", Source: "header"}, "a B c")
		b.send(t, session.Hint{Name: "run", Source: "header"}, "a B c D e")
		trunk.Reported(session.Anchor{Position: test.position, Model: "m", Tokens: 70})

		fork, _ := b.hold(t, session.Hint{Name: "run", Source: "header"}, "a B c OTHER e2")
		if fork.Parent != trunk.ID || fork.ForkAt != 3 {
			t.Fatalf("%s: fork of %s at %d, want %s at 3", name, fork.Parent, fork.ForkAt, trunk.ID)
		}
		if anchor := fork.LastAnchor("m"); anchor.Tokens != test.want {
			t.Errorf("%s: the fork has %+v, want %d tokens", name, anchor, test.want)
		}
		fork.Unlock()
	}
}
