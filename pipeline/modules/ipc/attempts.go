package ipc

import (
	"context"
	"errors"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// commitPause is how long a lane waits before it tries an epoch again whose
// originals could not be made durable.
const commitPause = 30 * time.Second

// Why an attempt at an epoch came to nothing.
const (
	nothingToFree = "nothing_to_free"
	notSmaller    = "not_smaller"
	freedLittle   = "freed_little" // an epoch that had to be made freed less than one must
	missedTarget  = "missed_target"
	notArchived   = "not_archived"
	notPlanned    = "not_planned"
	costGate      = "cost_gate"
)

// held returns why no epoch is tried on an occasion: what the lane remembers says
// that it would come to nothing once more. It is empty if nothing does.
//
// A prompt that does not fit is tried even with the breaker open, but only once
// until it has grown by what an epoch must free.
func held(exchange *pipeline.View, size int, why occasion) string {
	attempts := exchange.Attempts
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
		if exchange.Now.Sub(attempts.At) < commitPause {
			return notArchived
		}
	case (attempts.Reason == costGate || attempts.Reason == endsSoon) && (why == atNearLimit || !isWarm(exchange)):
	case stands(exchange, size) && !released(exchange, size):
		return attempts.Reason
	}
	return ""
}

// released reports whether a person has typed since the lane's last prompt, and what they
// typed before, which no level touched until now, is as large as what an epoch must free.
func released(exchange *pipeline.View, size int) bool {
	digests := exchange.Digests
	newest := latestTyped(digests)
	if newest < exchange.Heat.Position {
		return false
	}
	before := latestTyped(digests[:min(exchange.Heat.Position, len(digests))])
	return before >= 0 && exchange.Factor*float64(digests[before].Tokens) >= float64(max(1, leastFreed(exchange, size)))
}

// stands reports whether prompt and window are still about as large as at the last
// attempt.
func stands(exchange *pipeline.View, size int) bool {
	attempts := exchange.Attempts
	worth := max(1, leastFreed(exchange, size))
	return attempts.Size > 0 && within(size, attempts.Size, worth) && within(exchange.Limit, attempts.Limit, worth)
}

func within(a, b, distance int) bool { return a-b < distance && b-a < distance }

// reportHeld tells why nothing was tried.
func reportHeld(draft *pipeline.Draft, size int, why occasion, reason string) {
	if why == idle || why == brokeEven {
		return // there was no need
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
	attempts := draft.Attempts
	draft.Event("breaker_open", attempts.Reason, map[string]int{"fruitless": attempts.Fruitless})
}

// putOff remembers that an epoch was not worth making for now.
func putOff(draft *pipeline.Draft, reason string, size int) {
	attempts := session.Attempts{At: draft.Now, Fruitless: draft.Attempts.Fruitless, Reason: reason, Size: size, Limit: draft.Limit}
	remember(draft, attempts)
}

// cameToNothing counts an attempt that came to nothing and reports if that opens
// the breaker.
func cameToNothing(draft *pipeline.Draft, reason string, size int) {
	wasOpen := draft.Attempts.IsOpen()
	attempts := session.Attempts{At: draft.Now, Fruitless: draft.Attempts.Fruitless + 1, Reason: reason, Size: size, Limit: draft.Limit}
	remember(draft, attempts)
	if attempts.IsOpen() && !wasOpen {
		reportBreaker(draft)
	}
}

// cameTrue remembers an epoch that has been made. An open breaker stays open: only
// a reset closes it.
func cameTrue(draft *pipeline.Draft, epoch *epoch) {
	freed := epoch.projection.Before - epoch.projection.After
	attempts := session.Attempts{At: draft.Now}
	switch {
	case draft.Order != nil, epoch.projection.Reason == bytesReason: // it was to free what it could
	case float64(freed) < float64(leastFreed(&draft.View, epoch.projection.Before))*roundings:
		cameToNothing(draft, freedLittle, epoch.projection.After)
		return
	case draft.Attempts.IsOpen():
		attempts.Fruitless, attempts.Reason = draft.Attempts.Fruitless, draft.Attempts.Reason
	case !epoch.reached:
		attempts.Reason, attempts.Size, attempts.Limit = missedTarget, epoch.projection.After, draft.Limit
	case draft.Attempts == session.Attempts{}:
		return // there is nothing to forget
	}
	remember(draft, attempts)
}

// roundings is what rounding between the model's tokens and o200k ones may take of
// an epoch that frees just enough.
const roundings = 0.99

// brokeOff remembers an attempt that ended with an error, unless that says nothing of
// the lane: its client has left, or another replica was first.
func brokeOff(ctx context.Context, draft *pipeline.Draft, reason string, size int, err error) {
	if errors.Is(err, session.ErrOvertaken) || errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	cameToNothing(draft, reason, size)
}

func remember(draft *pipeline.Draft, attempts session.Attempts) {
	draft.Attempts = attempts
	draft.Committer.Tried(attempts)
}
