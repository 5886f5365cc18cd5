package session_test

import (
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// A message that is edited twice forks twice from the same lane: lines of descent stay short. What
// shares messages, a compaction, or an insert of the fork's own comes from the fork.
func TestForkOfAForkComesFromTheLaneThatItSharesAllWith(t *testing.T) {
	t.Parallel()
	hint := session.Hint{Name: "run", Source: "header"}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, b *bundle, fork *session.Lane)
		words   string
		ofFork  bool
		at      int
	}{
		"an edit of the same message":        {nil, "a B y", false, 2},
		"an edit of a message of the fork's": {func(t *testing.T, b *bundle, _ *session.Lane) { t.Helper(); b.send(t, hint, "a B z D e") }, "a B z D q", true, 4},
		"a compaction of the fork's": {func(_ *testing.T, b *bundle, fork *session.Lane) {
			chain := session.Chain(b.scope, hint, history("a B z"))
			fork.Adopt(session.Projection{Number: fork.NextNumber(), Covers: 2, Chain: chain[2]})
		}, "a B y", true, 2},
		"an insert of the fork's": {func(_ *testing.T, _ *bundle, fork *session.Lane) {
			fork.Keep([]session.Insert{{Number: fork.NextInsert(), Message: 1}})
		}, "a B y", true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			trunk := b.send(t, hint, "a B c")
			fork := b.send(t, hint, "a B z")
			if fork.Ancestry.Parent != trunk.ID || fork.Ancestry.ForkAt != 2 {
				t.Fatalf("fork of %s at %d, want %s at 2", fork.Ancestry.Parent, fork.Ancestry.ForkAt, trunk.ID)
			}
			if test.prepare != nil {
				test.prepare(t, b, fork)
			}
			want := trunk.ID
			if test.ofFork {
				want = fork.ID
			}
			if again := b.send(t, hint, test.words); again.Ancestry.Parent != want || again.Ancestry.ForkAt != test.at {
				t.Errorf("fork of %s at %d, want %s at %d", again.Ancestry.Parent, again.Ancestry.ForkAt, want, test.at)
			}
		})
	}
}

// A fork has the compactions, summaries, and inserts of the messages that it shares and no others, and
// goes on with their numbers.
func TestForkTakesOverWhatStandsForSharedMessages(t *testing.T) {
	t.Parallel()
	hint := session.Hint{Name: "run", Source: "header"}
	b := setup(t)
	b.send(t, hint, "a B c D e")
	trunk := b.send(t, hint, "a B c D e F g")
	chain := session.Chain(b.scope, hint, history("a B c D e F g"))
	for i, covers := range []int{2, 4, 6} {
		trunk.Adopt(session.Projection{Number: i + 1, Covers: covers, Chain: chain[covers]})
		trunk.Keep([]session.Insert{{Number: i + 1, Message: covers, Chain: chain[covers+1]}})
		b.resolver.Summarized(trunk.ID, session.Summary{Covers: covers, Chain: chain[covers], Text: "notes"})
	}
	for words, want := range map[string]struct{ projection, summary, insert int }{
		"a B c D other":     {2, 4, 1},
		"a B c D e F other": {3, 6, 2},
	} {
		fork, forked := b.hold(t, hint, words)
		projection, summary := fork.Projection(forked), fork.Summary(forked)
		if projection == nil || projection.Number != want.projection || fork.Ancestry.Inherited != want.projection || fork.NextNumber() != want.projection+1 {
			t.Errorf("%s: projection %+v, %d inherited, next %d; want %d", words, projection, fork.Ancestry.Inherited, fork.NextNumber(), want.projection)
		}
		if summary == nil || summary.Covers != want.summary {
			t.Errorf("%s: summary %+v, want one of %d messages", words, summary, want.summary)
		}
		if inserts := fork.Inserts(forked); len(inserts) != want.insert || fork.Ancestry.Taken != want.insert {
			t.Errorf("%s: inserts %+v, %d taken; want %d", words, inserts, fork.Ancestry.Taken, want.insert)
		}
		fork.Unlock()
	}
}

// The size in a late answer is ignored if a newer prompt of the lane was answered already, unless
// another model counts now.
func TestLateAnswerLeavesTheNewerSize(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lane := b.send(t, session.Hint{Name: "run", Source: "header"}, "a B c D e")
	lane.Reported(session.Anchor{Position: 5, Model: "m", Tokens: 90})
	lane.Reported(session.Anchor{Position: 3, Model: "m", Tokens: 50})
	if got := lane.LastAnchor("m").Tokens; got != 90 {
		t.Errorf("the size is %d, want 90", got)
	}
	lane.Reported(session.Anchor{Position: 5, Model: "m", Tokens: 95})
	if got := lane.LastAnchor("m").Tokens; got != 95 {
		t.Errorf("the size of the prompt sent again is %d, want 95", got)
	}
	lane.Reported(session.Anchor{Position: 3, Model: "other", Tokens: 60})
	if got := lane.LastAnchor("other").Tokens; got != 60 || lane.LastAnchor("m").Tokens != 0 {
		t.Errorf("the other model's size is %d, want 60", got)
	}
}

// A request that repeats an earlier one of its lane stays in the lane.
func TestRepeatedRequestOpensNoFork(t *testing.T) {
	t.Parallel()
	hint := session.Hint{Name: "run", Source: "header"}
	b := setup(t)
	trunk := b.send(t, hint, "a B c")
	b.send(t, hint, "a B c D e")
	if again := b.send(t, hint, "a B c"); again.ID != trunk.ID || again.Ancestry.Parent != uuid.Nil {
		t.Errorf("lane %s, forked from %s; want %s", again.ID, again.Ancestry.Parent, trunk.ID)
	}
}

// A compaction and an insert are of the history that they were made in, not of one that only is as long.
func TestCompactionsAndInsertsAreOfTheirHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lane := b.send(t, session.Hint{}, "a B c D e")
	own, other := session.Chain(b.scope, session.Hint{}, history("a B c D e")), session.Chain(b.scope, session.Hint{}, history("a B x D e"))
	lane.Adopt(session.Projection{Number: 1, Covers: 2, Chain: own[2]})
	lane.Adopt(session.Projection{Number: 2, Covers: 4, Chain: own[4]})
	for i, message := range []int{0, 2, 4} {
		lane.Keep([]session.Insert{{Number: i + 1, Message: message, Chain: own[message+1]}})
	}
	for range 2 { // the answer for one history does not change the lane
		for name, c := range map[string]struct {
			chain              []conversation.Hash
			projection, insert int
		}{"own": {own, 2, 3}, "another": {other, 1, 1}, "shorter": {own[:4], 1, 2}} {
			projection, inserts := lane.Projection(c.chain), lane.Inserts(c.chain)
			if projection == nil || projection.Number != c.projection || len(inserts) != c.insert {
				t.Errorf("%s: %+v and %d inserts, want number %d and %d", name, projection, len(inserts), c.projection, c.insert)
			}
		}
	}
	lane.Keep([]session.Insert{{Number: 4, Message: 2, Chain: other[3]}, {Number: 5, Message: 4, Chain: own[5]}})
	if inserts := lane.Inserts(own); len(inserts) != 4 || inserts[3].Number != 5 {
		t.Errorf("inserts %+v", inserts)
	}
	if again := lane.Inserts(other); len(again) != 2 || again[1].Number != 4 {
		t.Errorf("of the other history %+v", again)
	}
}

// What is skipped of an update goes with its links: the first link stays the one before its messages.
func TestSkippedMessagesGoWithTheirLinks(t *testing.T) {
	t.Parallel()
	for skipped := range 7 {
		update := session.Update{}
		update.Messages.Position, update.Messages.Head = 15, conversation.Hash{15}
		for i := range 6 {
			update.Messages.Links = append(update.Messages.Links, conversation.Hash{byte(10 + i)})
		}
		for i := range 5 {
			update.Messages.Entries = append(update.Messages.Entries, archive.Entry{Index: 10 + i})
		}
		update.Skip(10 + skipped)
		left := max(0, 5-skipped)
		if len(update.Messages.Entries) != left || update.First() != 15-left || update.Base() != (conversation.Hash{byte(15 - left)}) || left > 0 && len(update.Messages.Links) != left+1 {
			t.Errorf("%d skipped: %d messages from %d on, behind %v, %d links", skipped, len(update.Messages.Entries), update.First(), update.Base()[0], len(update.Messages.Links))
		}
	}
}
