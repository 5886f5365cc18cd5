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
		if fork.Ancestry.Parent != trunk.ID || fork.Ancestry.ForkAt != 3 {
			t.Fatalf("%s: fork of %s at %d, want %s at 3", name, fork.Ancestry.Parent, fork.Ancestry.ForkAt, trunk.ID)
		}
		if anchor := fork.LastAnchor("m"); anchor.Tokens != test.want {
			t.Errorf("%s: the fork has %+v, want %d tokens", name, anchor, test.want)
		}
		fork.Unlock()
	}
}

// A line of history that began as a copy of the main one goes on from what that was compacted to, also where
// the main one has not gone on since, and after a restart; the main one stays as it is.
func TestCopyOfTheMainLineForksFromIt(t *testing.T) {
	t.Parallel()
	main := session.Hint{Name: "run", Source: "header", Kind: session.Main}
	copied := session.Hint{Name: "run", Source: "header", Lane: "agent", Kind: session.Subagent, Copied: true}
	alone := session.Hint{Name: "run", Source: "header", Lane: "agent", Kind: session.Subagent}
	b := setup(t)
	trunk := b.send(t, main, "a B c")

	child := b.send(t, copied, "a B c D task")
	if child.Ancestry.Parent != trunk.ID || child.Ancestry.ForkAt != 3 || child.Kind != session.Subagent || child.Session != trunk.Session {
		t.Fatalf("lane %s of kind %q, from %s at %d; want a fork of %s at 3", child.ID, child.Kind, child.Ancestry.Parent, child.Ancestry.ForkAt, trunk.ID)
	}
	if next := b.send(t, main, "a B c D e"); next.ID != trunk.ID || next.Kind != session.Main {
		t.Errorf("the main line goes on in lane %s of kind %q, want %s", next.ID, next.Kind, trunk.ID)
	}
	if other := b.send(t, alone, "a B c D task"); other.ID == child.ID || other.Ancestry.Parent == trunk.ID {
		t.Errorf("a line of its own is in lane %s, from %s", other.ID, other.Ancestry.Parent)
	}
	b.restart(t)
	if next := b.send(t, copied, "a B c D task E more"); next.ID != child.ID || next.Kind != session.Subagent {
		t.Errorf("the copy goes on in lane %s of kind %q, want %s", next.ID, next.Kind, child.ID)
	}
	if next := b.send(t, main, "a B c D e F g"); next.ID != trunk.ID {
		t.Errorf("after a restart the main line goes on in lane %s, want %s", next.ID, trunk.ID)
	}
}

// A side chat is a copy of the conversation that goes on beside it, as it would itself.
func TestSideChatForksOnce(t *testing.T) {
	t.Parallel()
	main := session.Hint{Name: "run", Source: "header", Kind: session.Main}
	chat := session.Hint{Name: "run", Source: "header", Lane: "chat", Kind: session.Main, Copied: true}
	b := setup(t)
	trunk := b.send(t, main, "a B c")
	fork := b.send(t, chat, "a B c D ask")
	if fork.ID == trunk.ID || fork.Ancestry.Parent != trunk.ID || fork.Ancestry.ForkAt != 3 {
		t.Fatalf("lane %s, from %s at %d; want a fork of %s at 3", fork.ID, fork.Ancestry.Parent, fork.Ancestry.ForkAt, trunk.ID)
	}
	if next := b.send(t, chat, "a B c D ask E more"); next.ID != fork.ID {
		t.Errorf("the chat goes on in lane %s, want %s", next.ID, fork.ID)
	}
	b.restart(t)
	if next := b.send(t, chat, "a B c D ask E more F last"); next.ID != fork.ID {
		t.Errorf("after a restart the chat goes on in lane %s, want %s", next.ID, fork.ID)
	}
	if next := b.send(t, main, "a B c D e"); next.ID != trunk.ID {
		t.Errorf("the conversation goes on in lane %s, want %s", next.ID, trunk.ID)
	}
}

// What is remembered of a client's own compactions belongs to the line of history that they were of.
func TestCopyOfTheMainLineHasARunOfItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	main := session.Hint{Name: "run", Source: "header"}
	copied := session.Hint{Name: "run", Source: "header", Lane: "agent", Copied: true}
	b.resolver.Run(b.scope, main).Note(session.Compaction{Windows: 3})
	if before := b.resolver.Run(b.scope, copied).Note(session.Compaction{Windows: 1}); before.Windows != 0 {
		t.Errorf("the copy finds %+v", before)
	}
}
