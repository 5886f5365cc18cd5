package compactionbridge_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// asked counts how often a history was read.
type asked int

// Originals implements compactionbridge.Originals.
func (a *asked) Originals(context.Context, tenants.WorkspaceID, uuid.UUID, int, int) ([]archive.Entry, error) {
	*a++
	return nil, nil
}

// W43: nothing is put back once a block stands at the client's summary or behind it:
// the message that holds the summary counts.
func TestBlockAtTheBoundaryIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	const boundary = 3
	for name, test := range map[string]struct {
		insert session.Insert
		reads  asked
	}{
		"before the summary":         {session.Insert{Module: compactionbridge.Name, Message: boundary - 1}, 1},
		"at the summary":             {session.Insert{Module: compactionbridge.Name, Message: boundary}, 0},
		"behind the summary":         {session.Insert{Module: compactionbridge.Name, Message: boundary + 1}, 0},
		"in the system prompt":       {session.Insert{Module: compactionbridge.Name, Message: session.InSystem}, 0},
		"another module's":           {session.Insert{Module: "rehydrator", Message: boundary}, 1},
		"another module's in system": {session.Insert{Module: "rehydrator", Message: session.InSystem}, 1},
	} {
		reads := asked(0)
		exchange := &pipeline.View{
			Config: modules.Catalog().Default(),
			Lane: pipeline.Lane{
				Inserts: []session.Insert{test.insert},
				Left:    session.Left{Session: uuid.New(), Lane: uuid.New(), Kind: session.Main, From: uuid.New(), Messages: 9},
			},
			Class: client.Class{Kind: client.AfterCompaction, Confidence: 0.9, Marker: client.Marker{Boundary: boundary}},
		}
		if _, err := compactionbridge.New(nil, compactionbridge.Past{Originals: &reads}).Process(t.Context(), exchange); err != nil {
			t.Fatal(err)
		}
		if reads != test.reads {
			t.Errorf("%s: the history was read %d times, want %d", name, reads, test.reads)
		}
	}
}

// pastOf is a lane that holds messages of so many tokens, and the range of it that was read.
type pastOf struct {
	tokens, messages int

	from, to int
	kept     []conversation.Hash // that the lane is looked for by
}

// Before implements compactionbridge.Lanes.
func (*pastOf) Before(context.Context, tenants.WorkspaceID, uuid.UUID, uuid.UUID) (uuid.UUID, int, error) {
	return uuid.Nil, 0, session.ErrNotFound
}

// Holding implements compactionbridge.Lanes.
func (p *pastOf) Holding(_ context.Context, _ session.Scope, _ uuid.UUID, kept []conversation.Hash) (session.LaneMatch, error) {
	p.kept = kept
	return session.LaneMatch{Lane: uuid.New(), Messages: p.messages, Tokens: p.tokens}, nil
}

// Originals implements compactionbridge.Past.
func (p *pastOf) Originals(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, from, to int) ([]archive.Entry, error) {
	p.from, p.to = from, to
	return nil, nil
}

// A lane without a name is taken for the history that was left if 30 tokens of it came back, and its newest
// 4,000 messages are read.
func TestHistoryOfAnUnnamedLaneNeedsSharedTokens(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tokens, messages, from, to int }{
		{29, 9, 0, 0}, {30, 9, 0, 9}, {31, 4_000, 0, 4_000}, {31, 4_001, 1, 4_001},
	} {
		past := &pastOf{tokens: test.tokens, messages: test.messages}
		config := modules.Catalog().Default()
		pipeline.Change[compactionbridge.Config](&config).Scope = pipeline.ScopeKey
		exchange := &pipeline.View{
			Config: config,
			Lane:   pipeline.Lane{Left: session.Left{Session: uuid.New(), Lane: uuid.New(), Kind: session.Main, Unnamed: true}},
			Class:  client.Class{Kind: client.AfterCompaction, Confidence: 0.9},
		}
		if _, err := compactionbridge.New(nil, compactionbridge.Past{Lanes: past, Originals: past}).Process(t.Context(), exchange); err != nil {
			t.Fatal(err)
		}
		if past.from != test.from || past.to != test.to {
			t.Errorf("%d tokens of %d messages: %d to %d are read, want %d to %d", test.tokens, test.messages, past.from, past.to, test.from, test.to)
		}
		// S45: by default a history without a name is looked for in no other session.
		*past, exchange.Config = pastOf{tokens: test.tokens, messages: test.messages}, modules.Catalog().Default()
		if _, err := compactionbridge.New(nil, compactionbridge.Past{Lanes: past, Originals: past}).Process(t.Context(), exchange); err != nil || past.to != 0 {
			t.Errorf("%d tokens of %d messages: %d are read by default (%v)", test.tokens, test.messages, past.to, err)
		}
	}
}

// The history is looked for by the messages behind the summary: the summary itself is in no other lane.
func TestHistoryIsLookedForByTheMessagesBehindTheSummary(t *testing.T) {
	t.Parallel()
	codec := anthropic.New()
	asked, err := wire.Open(body(t, user("a"), answer("b"), user("c"), answer("d"), user("e")), codec.List())
	if err != nil {
		t.Fatal(err)
	}
	digests := make([]conversation.Digest, 5)
	for i := range digests {
		digests[i].Sum = conversation.Hash{byte(i + 1)}
	}
	for boundary, want := range map[int][]conversation.Hash{0: {{2}, {3}, {4}, {5}}, 2: {{4}, {5}}, 4: {}, 7: {}} {
		past, config := &pastOf{messages: 9}, modules.Catalog().Default()
		pipeline.Change[compactionbridge.Config](&config).Scope = pipeline.ScopeKey
		exchange := &pipeline.View{
			Config: config, Conversation: pipeline.NewConversation(codec, asked, digests),
			Lane:  pipeline.Lane{Left: session.Left{Session: uuid.New(), Lane: uuid.New(), Kind: session.Main, Unnamed: true}},
			Class: client.Class{Kind: client.AfterCompaction, Confidence: 0.9, Marker: client.Marker{Boundary: boundary}},
		}
		if _, err := compactionbridge.New(nil, compactionbridge.Past{Lanes: past, Originals: past}).Process(t.Context(), exchange); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(past.kept, want) {
			t.Errorf("a summary in message %d: looked for by %v, want %v", boundary, past.kept, want)
		}
	}
}
