package pipelinetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// Case is an exchange for testing a module.
type Case struct {
	Name    string
	Codec   wire.Codec
	Body    []byte
	Options Options
}

// TestModule checks the rules for all modules: a module leaves the client's bytes unchanged, returns the same
// result twice, makes a projection that replaces a whole prefix of the history, and can be undone if it fails
// at any point.
func TestModule(t *testing.T, module pipeline.Module, cases []Case) {
	t.Helper()

	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			t.Run("LeavesOriginalsAlone", func(t *testing.T) { leavesOriginalsAlone(t, module, c) })
			t.Run("ComesToTheSameResultTwice", func(t *testing.T) { sameResultTwice(t, module, c) })
			t.Run("StandsForAWholePrefix", func(t *testing.T) { wholePrefix(t, module, c) })
			t.Run("IsUndoneWhenTheArchiveFails", func(t *testing.T) { undoneWithoutArchive(t, module, c) })
			t.Run("IsUndoneWhenItsTimeIsUp", func(t *testing.T) { undoneAfterDeadline(t, module, c) })
		})
	}
}

func leavesOriginalsAlone(t *testing.T, module pipeline.Module, c Case) {
	t.Helper()

	body := bytes.Clone(c.Body)
	var current *session.Projection
	if c.Options.Projection != nil {
		clone := *c.Options.Projection
		clone.Parts = slices.Clone(clone.Parts)
		current = &clone
	}
	exchange := NewExchange(t, c.Codec, body, c.Options)
	digests, turns := slices.Clone(exchange.Conversation.Digests), slices.Clone(exchange.Conversation.Turns)

	if err := Process(t.Context(), module, exchange); err != nil {
		t.Fatalf("process: %v", err)
	}

	if !bytes.Equal(body, c.Body) {
		t.Error("the body has changed")
	}
	if !slices.Equal(digests, exchange.Conversation.Digests) || !slices.Equal(turns, exchange.Conversation.Turns) {
		t.Error("digests or turns have changed")
	}
	if current != nil && !samePrompt(current, c.Options.Projection) {
		t.Error("the lane's current projection has changed")
	}
}

func sameResultTwice(t *testing.T, module pipeline.Module, c Case) {
	t.Helper()

	var sealed [2][]byte
	for i := range sealed {
		exchange := NewExchange(t, c.Codec, c.Body, c.Options)
		if err := Process(t.Context(), module, exchange); err != nil {
			t.Fatalf("process: %v", err)
		}
		sealed[i] = Seal(exchange)
	}

	if !bytes.Equal(sealed[0], sealed[1]) {
		t.Error("the same exchange gave two different prompts")
	}
}

func wholePrefix(t *testing.T, module pipeline.Module, c Case) {
	t.Helper()

	exchange := NewExchange(t, c.Codec, c.Body, c.Options)
	if err := Process(t.Context(), module, exchange); err != nil {
		t.Fatalf("process: %v", err)
	}

	if err := CheckProjection(exchange); err != nil {
		t.Error(err)
	}
}

func undoneWithoutArchive(t *testing.T, module pipeline.Module, c Case) {
	t.Helper()

	c.Options.Commit = func(context.Context, session.Projection) error { return errors.New("disk full") }
	exchange := NewExchange(t, c.Codec, c.Body, c.Options)
	before := Seal(exchange)

	pipeline.NewChain(module).Process(t.Context(), exchange)

	if !bytes.Equal(before, Seal(exchange)) {
		t.Error("the prompt changed although the archive failed")
	}
	if exchange.Lane.Projection != c.Options.Projection {
		t.Error("the projection changed although the archive failed")
	}
}

func undoneAfterDeadline(t *testing.T, module pipeline.Module, c Case) {
	t.Helper()

	exchange := NewExchange(t, c.Codec, c.Body, c.Options)
	before := Seal(exchange)

	pipeline.NewChain(module).WithDeadline(0).Process(t.Context(), exchange)

	if !bytes.Equal(before, Seal(exchange)) {
		t.Error("the prompt changed although the deadline had passed")
	}
}

// CheckProjection reports a fault of an exchange's projection: its parts must replace each of its messages
// once and in order, it must end after calls with their results, and its counts must match its content.
func CheckProjection(exchange *pipeline.Exchange) error {
	projection := exchange.Lane.Projection
	if projection == nil {
		return nil
	}
	next := 0
	for _, part := range projection.Parts {
		if part.From != next || part.To <= part.From {
			return errors.New("the parts leave a gap, overlap or are empty")
		}
		next = part.To
		if err := checkPart(exchange, part); err != nil {
			return err
		}
	}
	if next != projection.Covers {
		return errors.New("the parts do not reach as far as the projection")
	}
	if projection.Chain != exchange.Conversation.Chain[projection.Covers] {
		return errors.New("the projection's link is not that of the history")
	}
	for _, turn := range exchange.Conversation.Turns {
		if turn.From < projection.Covers && turn.To > projection.Covers && !isSettled(exchange, turn.From, projection.Covers) {
			return errors.New("the projection ends between a call and its result")
		}
	}
	return nil
}

// isSettled reports whether each call of the messages from from to to has its result among them. The newest
// turn may have continued after its epoch.
func isSettled(exchange *pipeline.Exchange, from, to int) bool {
	open := map[string]bool{}
	for i := from; i < to; i++ {
		message, err := exchange.Conversation.Message(i)
		if err != nil {
			return false
		}
		for _, block := range message.Blocks {
			switch block.Kind {
			case conversation.ToolCall:
				open[block.ID] = true
			case conversation.ToolResult:
				delete(open, block.ID)
			case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	return len(open) == 0
}

func checkPart(exchange *pipeline.Exchange, part session.Part) error {
	if part.Raw == nil {
		if part.Messages != part.To-part.From {
			return errors.New("a part of the client's own messages miscounts them")
		}
		return nil
	}
	list := append(append([]byte(`{"list":[`), part.Raw...), `]}`...)
	envelope, err := wire.Open(list, "list")
	if err != nil {
		return err
	}
	if envelope.Len() != part.Messages {
		return errors.New("a part miscounts its messages")
	}
	for i := range envelope.Len() {
		if _, err := exchange.Codec.Parse(envelope.Element(i)); err != nil {
			return err
		}
	}
	return nil
}

// samePrompt reports whether two projections result in the same bytes.
func samePrompt(a, b *session.Projection) bool {
	return a.Covers == b.Covers && slices.EqualFunc(a.Parts, b.Parts, func(a, b session.Part) bool {
		return a.From == b.From && a.To == b.To && a.Level == b.Level && a.Messages == b.Messages &&
			(a.Raw == nil) == (b.Raw == nil) && bytes.Equal(a.Raw, b.Raw)
	})
}
