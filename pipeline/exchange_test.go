package pipeline_test

import (
	"encoding/json"
	"slices"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// sized returns an exchange of four messages in two turns, of 10, 20, 30 and 40
// o200k tokens, behind 5 that precede every prompt; the model makes two of each.
func sized() *pipeline.Exchange {
	return &pipeline.Exchange{View: pipeline.View{
		Limits: pipeline.Limits{Factor: 2, Fixed: 5, Limit: 1000},
		Conversation: pipeline.Conversation{
			Digests: []conversation.Digest{{Tokens: 10}, {Tokens: 20}, {Tokens: 30}, {Tokens: 40}},
			Turns:   []conversation.Turn{{From: 0, To: 2}, {From: 2, To: 4}},
		},
	}}
}

// shortened stands for the first two messages with 7 tokens.
func shortened() *session.Projection {
	return &session.Projection{Number: 3, Covers: 2, Parts: []session.Part{
		{From: 0, To: 1, Level: 0, Tokens: 4, Messages: 1},
		{From: 1, To: 2, Level: 1, Tokens: 3, Messages: 1, Raw: json.RawMessage(`{}`)},
	}}
}

// B2: what precedes the messages counts.
func TestTheSizeIsEstimatedFromAllParts(t *testing.T) {
	t.Parallel()

	exchange := sized()
	if got := exchange.Size(nil); got != 2*105 {
		t.Errorf("originals: %d", got)
	}
	if got := exchange.Size(shortened()); got != 2*82 {
		t.Errorf("shortened: %d", got)
	}
	exchange.Lane.Projection = shortened()
	if got := exchange.Original(); got != 2*105 {
		t.Errorf("as the client sent it: %d", got)
	}
}

// B1: of a prompt that continues a reported one only the end is estimated.
func TestAReportedSizeIsContinued(t *testing.T) {
	t.Parallel()

	exchange := sized()
	exchange.Lane.Projection = shortened()
	exchange.Lane.Anchor = session.Anchor{Position: 3, Projection: 3, Replaced: exchange.Lane.Projection.Tokens(), Fixed: 4, Tokens: 500}
	if got := exchange.Size(exchange.Lane.Projection); got != 500+2*(40+1) {
		t.Errorf("continued: %d", got)
	}
	if got := exchange.Original(); got != 500+2*(40+1)+2*(30-7) {
		t.Errorf("as the client sent it: %d", got)
	}

	// Another projection's report says nothing about this one.
	exchange.Lane.Anchor.Projection = 2
	if got := exchange.Size(exchange.Lane.Projection); got != 2*82 {
		t.Errorf("other projection: %d", got)
	}
	// Nor does another process's projection with the same number.
	exchange.Lane.Anchor.Projection, exchange.Lane.Anchor.Replaced = 3, exchange.Lane.Projection.Tokens()+1
	if got := exchange.Size(exchange.Lane.Projection); got != 2*82 {
		t.Errorf("other projection with its number: %d", got)
	}
	// Nor does one of a longer history: the client went back.
	exchange.Lane.Anchor = session.Anchor{Position: 9, Projection: 3, Replaced: exchange.Lane.Projection.Tokens(), Tokens: 500}
	if got := exchange.Size(exchange.Lane.Projection); got != 2*82 {
		t.Errorf("shorter history: %d", got)
	}
}

// The size of a prompt that is sent again is the one that was reported. What modules have put into it counts
// only as far as it was not in the prompt reported.
func TestReportedSizeCountsForThePromptSentAgain(t *testing.T) {
	t.Parallel()
	exchange := sized()
	exchange.Lane.Inserts = []session.Insert{{Number: 1, Message: 1, Tokens: 6}, {Number: 2, Message: 3, Tokens: 8}}
	for name, test := range map[string]struct {
		anchor session.Anchor
		want   int
	}{
		"all of it was reported":       {session.Anchor{Position: 4, Fixed: 5, Inserted: 14, Tokens: 500}, 500},
		"an insert is new":             {session.Anchor{Position: 4, Fixed: 5, Inserted: 6, Tokens: 500}, 500 + 2*8},
		"a message and an insert":      {session.Anchor{Position: 3, Fixed: 5, Inserted: 6, Tokens: 500}, 500 + 2*(40+8)},
		"less precedes the messages":   {session.Anchor{Position: 4, Fixed: 9, Inserted: 14, Tokens: 500}, 500 - 2*4},
		"the client has gone back":     {session.Anchor{Position: 5, Fixed: 5, Inserted: 14, Tokens: 500}, 2 * (105 + 14)},
		"it was of a shortened prompt": {session.Anchor{Position: 4, Projection: 3, Fixed: 5, Inserted: 14, Tokens: 500}, 2 * (105 + 14)},
	} {
		exchange.Lane.Anchor = test.anchor
		if got := exchange.Size(nil); got != test.want {
			t.Errorf("%s: %d tokens, want %d", name, got, test.want)
		}
		if got, want := exchange.Original(), test.want-2*14; got != want {
			t.Errorf("%s: %d tokens as the client sent it, want %d", name, got, want)
		}
	}
}

// The inserts of a range are those at its messages, without the one behind it.
func TestInsertsBelongToTheMessagesOfARange(t *testing.T) {
	t.Parallel()
	exchange := sized()
	exchange.Lane.Inserts = []session.Insert{{Message: 1, Tokens: 6}, {Message: 2, Tokens: 8}, {Message: 3, Tokens: 100}}
	for _, test := range []struct{ from, to, want int }{{0, 1, 0}, {1, 2, 6}, {1, 3, 14}, {2, 3, 8}, {3, 4, 100}, {0, 4, 114}} {
		if got := exchange.Added(test.from, test.to); got != test.want {
			t.Errorf("messages %d to %d have inserts of %d tokens, want %d", test.from, test.to, got, test.want)
		}
	}
}

func TestTurnsCountWithTheDeepestOfTheirMessages(t *testing.T) {
	t.Parallel()

	exchange := sized()
	raw := json.RawMessage{}
	for _, c := range []struct {
		parts []session.Part
		want  [4]int
	}{
		{nil, [4]int{2}},
		{[]session.Part{{From: 0, To: 1}, {From: 1, To: 2, Level: 2, Raw: raw}}, [4]int{1, 0, 1}},
		{[]session.Part{{From: 0, To: 3, Level: 3, Raw: raw}, {From: 3, To: 4, Level: 1}}, [4]int{0, 0, 0, 2}},
		{[]session.Part{{From: 0, To: 4, Level: 2, Raw: raw}}, [4]int{0, 0, 2}},
		{[]session.Part{{From: 0, To: 2}, {From: 2, To: 4, Level: 1}}, [4]int{1, 1}},
	} {
		var projection *session.Projection
		if c.parts != nil {
			projection = &session.Projection{Covers: c.parts[len(c.parts)-1].To, Parts: c.parts}
		}
		if got := exchange.Levels(projection); got != c.want {
			t.Errorf("%+v: %v", c.parts, got)
		}
	}
}

func TestPiecesCoverTheWholeList(t *testing.T) {
	t.Parallel()

	exchange := sized()
	same := func(a, b wire.Piece) bool { return a.From == b.From && a.To == b.To && string(a.Raw) == string(b.Raw) }
	if got := exchange.Pieces(); !slices.EqualFunc(got, []wire.Piece{{From: 0, To: 4}}, same) {
		t.Errorf("originals: %v", got)
	}
	exchange.Lane.Projection = shortened()
	want := []wire.Piece{{From: 0, To: 1}, {From: 1, To: 2, Raw: json.RawMessage(`{}`)}, {From: 2, To: 4}}
	if got := exchange.Pieces(); !slices.EqualFunc(got, want, same) {
		t.Errorf("shortened: %v", got)
	}
}
