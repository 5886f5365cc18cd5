package api

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"palimpsest/pipeline/wire"
)

// streamShare says how many bytes of a stream bring one of what the model says, roughly.
const streamShare = 8

// guardedTap is a tap that costs the client nothing: what panics in it is its answer's
// Failure, and it hears no more.
type guardedTap struct {
	tap     wire.Tap
	stream  bool
	heard   int // bytes, with those that it could not read
	failure string
}

func guard(tap wire.Tap, stream bool) *guardedTap { return &guardedTap{tap: tap, stream: stream} }

// Write implements wire.Tap.
func (g *guardedTap) Write(p []byte) (int, error) {
	g.heard += len(p)
	if g.failure == "" {
		defer g.survive()
		_, _ = g.tap.Write(p) // a tap never fails
	}
	return len(p), nil
}

// Answer implements wire.Tap. Of an answer that could not be read it says as much as
// usage can be estimated by.
func (g *guardedTap) Answer() wire.Answer {
	answer := g.read()
	answer.Failure = cmp.Or(g.failure, answer.Failure)
	if answer.Failure == "" {
		return answer
	}
	answer.Messages, answer.Complete = nil, false
	if answer.Said == 0 {
		answer.Said = g.heard
		if g.stream {
			answer.Said /= streamShare
		}
	}
	return answer
}

func (g *guardedTap) read() wire.Answer {
	defer g.survive()
	return g.tap.Answer()
}

// survive ends a panic.
func (g *guardedTap) survive() {
	if value := recover(); value != nil {
		g.failure = panicked(value)
	}
}

// aside does work on an answer of which the client must not notice: what panics in it
// is logged and counted.
func (r *Records) aside(ctx context.Context, event *RequestLog, work func()) {
	defer func() {
		if value := recover(); value != nil {
			r.unread(ctx, event, panicked(value))
		}
	}()
	work()
}

// panicked says what was panicked with, and where.
func panicked(value any) string { return fmt.Sprintf("%v\n%s", value, debug.Stack()) }

// unread tells that an answer could not be read whole.
func (r *Records) unread(ctx context.Context, event *RequestLog, failure string) {
	r.Log.ErrorContext(ctx, "reading an answer panicked; its client has it whole", "request", event.ID, "error", failure)
	r.Metrics.unread.Inc()
}

// Interface guard.
var _ wire.Tap = (*guardedTap)(nil)
