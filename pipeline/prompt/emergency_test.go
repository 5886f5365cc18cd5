package prompt_test

import (
	"context"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// watch is the module ipc. It remembers what the newest exchange was told of its lane.
type watch struct {
	*ipc.Module

	anchor   session.Anchor
	attempts session.Attempts
	plan     *session.Plan
}

// Process implements pipeline.Module.
func (w *watch) Process(ctx context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	w.anchor, w.attempts, w.plan = exchange.Lane.Anchor, exchange.Lane.Attempts, exchange.Lane.Plan
	return w.Module.Process(ctx, exchange)
}

// watched returns a bench and what its exchanges are told.
func watched(t *testing.T, window int) (*bench, *watch) {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	b, told := newBench(t, conversation.Anthropic, window), &watch{Module: ipc.New(counter.Message)}
	b.writer.Chain = pipeline.NewChain(told)
	return b, told
}

// E4, B6: the provider's word is newer than all that is known of the lane: a reported
// size that said the prompt fits, a breaker that is open, a plan for another size.
func TestEmergencyForgetsWhatSaidThatThePromptFits(t *testing.T) {
	t.Parallel()
	b, told := watched(t, 200_000)
	c := begun("claude-sonnet-4-5").filled(14, 1_000)
	first := b.write(c.body())
	sent := first.Sent()
	b.writer.Answered(sent, wire.Answer{Complete: true, Usage: wire.Usage{Reported: true, Input: 900, Output: 1}})
	first.Lane.Tried(session.Attempts{At: time.Now(), Fruitless: session.Patience, Reason: "nothing_to_free", Size: 900, Limit: 200_000})
	refused := b.write(c.body())
	if told.anchor.Tokens != 900 || told.attempts.Fruitless != session.Patience {
		t.Fatalf("the lane is said to have %+v and %+v", told.anchor, told.attempts)
	}

	shrunk, ok := b.writer.Shrink(t.Context(), refused, wire.Overflow{Tokens: 16_000, Window: 15_000})
	if !ok {
		t.Fatal("not shrunk")
	}
	if told.anchor != (session.Anchor{}) || told.attempts != (session.Attempts{}) || told.plan != nil {
		t.Errorf("the second attempt is told %+v, %+v and %v", told.anchor, told.attempts, told.plan)
	}
	if least := 16_000 / float64(refused.Exchange.Estimate(refused.Exchange.Lane.Projection)); shrunk.Exchange.Limits.Factor < least {
		t.Errorf("the factor is %v, and the provider counted %v times as many", shrunk.Exchange.Limits.Factor, least)
	}
	if after := shrunk.Exchange.Size(shrunk.Exchange.Lane.Projection); after > 15_000 || len(shrunk.Body) >= len(refused.Body) {
		t.Errorf("%d tokens in %d bytes, %d bytes before", after, len(shrunk.Body), len(refused.Body))
	}
}

// B6: a refusal that came too late for a second attempt counts for the next request:
// the lane's prompt is taken to be larger than the window, whatever was estimated.
func TestLateRefusalRaisesTheLanesSize(t *testing.T) {
	t.Parallel()
	b, told := watched(t, 20_000)
	c := begun("claude-sonnet-4-5").filled(6, 1_000)
	first := b.write(c.body())
	if first.Exchange.Report.Archived != 0 {
		t.Fatalf("the prompt was taken to be too long: %+v", first.Exchange.Report)
	}
	limit := first.Exchange.Limits.Limit
	b.writer.Overflowed(first.Sent())

	next := b.write(c.filled(1, 10).body())
	if told.anchor.Tokens <= limit || told.anchor.Position == 0 {
		t.Errorf("the next request is told %+v, want more than %d tokens", told.anchor, limit)
	}
	if next.Exchange.Report.Archived == 0 || len(next.Body) >= len(first.Body) {
		t.Errorf("the next request goes out with %d bytes, %d before: %+v", len(next.Body), len(first.Body), next.Exchange.Report)
	}
}
