package api

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"palimpsest/pipeline/wire"
)

// streamShare is a rough number of stream bytes per byte of the model's text.
const streamShare = 8

// guardedTap protects the client from its tap: a panic in the tap becomes its answer's Failure, and ends its
// reading.
type guardedTap struct {
	tap     wire.Tap
	stream  bool
	heard   int // bytes, including unreadable ones
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

// Answer implements wire.Tap. If the answer could not be read, it says just enough to estimate the usage.
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

// survive recovers from a panic.
func (g *guardedTap) survive() {
	if value := recover(); value != nil {
		g.failure = panicked(value)
	}
}

// aside does work on an answer without any effect on the client: a panic in work is logged and counted.
func (r *Records) aside(ctx context.Context, event *RequestLog, work func()) {
	defer func() {
		if value := recover(); value != nil {
			r.unread(ctx, event, panicked(value))
		}
	}()
	work()
}

// panicked describes the value of a panic, and its stack.
func panicked(value any) string { return fmt.Sprintf("%v\n%s", value, debug.Stack()) }

// unread logs that an answer could not be read completely.
func (r *Records) unread(ctx context.Context, event *RequestLog, failure string) {
	r.Log.ErrorContext(ctx, "reading an answer panicked; its client has it whole", "request", event.ID, "error", failure)
	r.Metrics.unread.Inc()
}

// Interface guard.
var _ wire.Tap = (*guardedTap)(nil)
