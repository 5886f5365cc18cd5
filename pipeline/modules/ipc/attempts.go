package ipc

import (
	"context"
	"errors"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// commitPause is how long a lane waits before it retries an epoch whose originals could not be made
// durable.
const commitPause = 30 * time.Second

// The reasons for a failed attempt at an epoch.
const (
	nothingToFree = "nothing_to_free"
	notSmaller    = "not_smaller"
	freedLittle   = "freed_little" // a required epoch freed less than the minimum
	missedTarget  = "missed_target"
	notArchived   = "not_archived"
	notPlanned    = "not_planned"
	costGate      = "cost_gate"
)

// held returns why no epoch is tried on an occasion, because the lane's attempts show that it would
// fail again. It returns "" if an epoch may be tried.
//
// A prompt that does not fit is tried even with the breaker open, but only once until it has grown
// by the minimum that an epoch must free.
func held(exchange *pipeline.View, size int, why occasion) string {
	attempts := exchange.Lane.Attempts
	switch {
	case why == overLimit:
		wasOver := attempts.Size > attempts.Limit || attempts.Reason == freedLittle
		if attempts.Reason != notArchived && wasOver && stands(exchange, size) && !released(exchange, size) {
			return attempts.Reason
		}
		return ""
	case why == overBytes:
		if attempts.Reason == nothingToFree && stands(exchange, size) {
			return attempts.Reason
		}
		return ""
	case attempts.IsOpen():
		return "breaker_open"
	case attempts.Reason == notArchived:
		if exchange.Lane.Now.Sub(attempts.At) < commitPause {
			return notArchived
		}
	case (attempts.Reason == costGate || attempts.Reason == endsSoon) && (why == atNearLimit || !isWarm(exchange)):
	case stands(exchange, size) && !released(exchange, size):
		return attempts.Reason
	}
	return ""
}

// released reports whether a person has typed since the lane's last prompt, and whether their
// previous message, until now untouched by any level, is as large as the minimum that an epoch must
// free.
func released(exchange *pipeline.View, size int) bool {
	digests := exchange.Conversation.Digests
	newest := latestTyped(digests)
	if newest < exchange.Lane.Heat.Position {
		return false
	}
	before := latestTyped(digests[:min(exchange.Lane.Heat.Position, len(digests))])
	return before >= 0 && exchange.Limits.Factor*float64(digests[before].Tokens) >= float64(max(1, leastFreed(exchange, size)))
}

// stands reports whether prompt and window are still about as large as at the last attempt.
func stands(exchange *pipeline.View, size int) bool {
	attempts := exchange.Lane.Attempts
	worth := max(1, leastFreed(exchange, size))
	return attempts.Size > 0 && within(size, attempts.Size, worth) && within(exchange.Limits.Limit, attempts.Limit, worth)
}

func within(a, b, distance int) bool { return a-b < distance && b-a < distance }

// reportHeld reports why no epoch was tried.
func reportHeld(draft *pipeline.Draft, size int, why occasion, reason string) {
	if why == idle || why == brokeEven {
		return // not needed
	}
	switch reason {
	case costGate, endsSoon, notArchived:
		skip(draft, reason)
		return
	case "breaker_open":
		reportBreaker(draft)
	}
	unreachable(draft, size)
}

func reportBreaker(draft *pipeline.Draft) {
	attempts := draft.Lane.Attempts
	draft.Event("breaker_open", attempts.Reason, map[string]int{"fruitless": attempts.Fruitless})
}

// putOff remembers that an epoch was not worth making for now.
func putOff(draft *pipeline.Draft, reason string, size int) {
	attempts := session.Attempts{At: draft.Lane.Now, Fruitless: draft.Lane.Attempts.Fruitless, Reason: reason, Size: size, Limit: draft.Limits.Limit}
	remember(draft, attempts)
}

// cameToNothing counts a failed attempt and reports if that opens the breaker.
func cameToNothing(draft *pipeline.Draft, reason string, size int) {
	wasOpen := draft.Lane.Attempts.IsOpen()
	attempts := session.Attempts{At: draft.Lane.Now, Fruitless: draft.Lane.Attempts.Fruitless + 1, Reason: reason, Size: size, Limit: draft.Limits.Limit}
	remember(draft, attempts)
	if attempts.IsOpen() && !wasOpen {
		reportBreaker(draft)
	}
}

// cameTrue remembers a completed epoch. An open breaker stays open: only a reset closes it.
func cameTrue(draft *pipeline.Draft, epoch *epoch) {
	freed := epoch.projection.Before - epoch.projection.After
	attempts := session.Attempts{At: draft.Lane.Now}
	switch {
	case draft.Lane.Order != nil, epoch.projection.Reason == bytesReason: // these free as much as they can
	case float64(freed) < float64(leastFreed(&draft.View, epoch.projection.Before))*roundings:
		cameToNothing(draft, freedLittle, epoch.projection.After)
		return
	case draft.Lane.Attempts.IsOpen():
		attempts.Fruitless, attempts.Reason = draft.Lane.Attempts.Fruitless, draft.Lane.Attempts.Reason
	case !epoch.reached:
		attempts.Reason, attempts.Size, attempts.Limit = missedTarget, epoch.projection.After, draft.Limits.Limit
	case draft.Lane.Attempts == session.Attempts{}:
		return // no attempts to forget
	}
	remember(draft, attempts)
}

// roundings allows for the rounding between the model's tokens and o200k tokens in an epoch that
// frees just enough.
const roundings = 0.99

// brokeOff remembers an attempt that ended with an error, unless the error isn't about the lane:
// the client disconnected, or another replica was first.
func brokeOff(ctx context.Context, draft *pipeline.Draft, reason string, size int, err error) {
	if errors.Is(err, session.ErrOvertaken) || errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	cameToNothing(draft, reason, size)
}

func remember(draft *pipeline.Draft, attempts session.Attempts) {
	draft.Lane.Attempts = attempts
	draft.Committer.Tried(attempts)
}
