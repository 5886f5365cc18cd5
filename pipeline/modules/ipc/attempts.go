package ipc

import (
	"context"
	"errors"
	"maps"
	"slices"
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

// The causes of a prompt above its target; the reasons of target_unreachable.
const (
	heldByNewest   = "newest_turn"
	heldByFixed    = "system_prompt_and_tools"
	heldByPins     = "pinned_turns"
	heldByProvider = "provider_compaction"
	heldByCalls    = "unanswered_calls"
	heldByLoop     = "tool_loop_opener"
	heldByTyped    = "typed_message"
	heldByMessages = "kept_messages"

	heldByWindow  = "context_window"
	heldByReserve = "answer_reserve"
)

// unreachable reports that the prompt goes out above its target, and the largest part of it that no
// level can shorten.
func unreachable(draft *pipeline.Draft, size int) {
	draft.Report.Compression = pipeline.Unreachable
	reason, counts := obstacle(&draft.View, size)
	counts["size"], counts["limit"] = size, draft.Limits.Limit
	if narrowed := narrowedBy(&draft.View, size); narrowed != "" {
		reason = narrowed
	}
	draft.Event("target_unreachable", reason, counts)
}

// narrowedBy returns the reason for a limit so small that the prompt is above its target, if the
// prompt would be below it in the whole window: the user's setting, or the room that the client
// reserves for the answer. It returns "" if neither applies.
func narrowedBy(exchange *pipeline.View, size int) string {
	config := configOf(exchange)
	fits := func(limit int) bool { return float64(size) <= config.TargetUtilization*float64(limit) }
	switch own := config.ContextWindow.Tokens(); {
	case own > 0 && own == exchange.Limits.Limit && (exchange.Limits.Takes == 0 || fits(exchange.Limits.Takes)):
		return heldByWindow
	case exchange.Limits.Limit == exchange.Limits.Takes && exchange.Limits.Takes < exchange.Model.InputLimit(0)*3/4 && fits(exchange.Model.InputLimit(0)):
		return heldByReserve
	}
	return ""
}

// obstacle returns the largest incompressible part of a prompt of size tokens, and how many o200k
// tokens each obstacle takes.
func obstacle(exchange *pipeline.View, size int) (reason string, tokens map[string]int) {
	p := newPlanner(exchange, nil, nil, size, byTheRules) // no counting
	tokens = map[string]int{heldByFixed: exchange.Limits.Fixed}
	if err := p.protection.findKept(); err != nil {
		return "unreadable_message", tokens
	}
	boundary := p.protection.boundary()
	for i, t := range p.history.turns {
		switch {
		case i == len(p.history.turns)-1:
			tokens[heldByNewest] += t.original
		case p.protection.isPinned(t.Turn):
			tokens[heldByPins] += t.original
		case t.From <= boundary:
			tokens[heldByProvider] += t.original
		case t.deepest == 0:
			tokens[heldByCalls] += t.original
		case i == p.protection.loop:
			tokens[heldByLoop] += t.original
		default:
			tokens[heldByTyped] += t.front
			tokens[heldByMessages] += p.protection.keptOf(t)
		}
	}
	maps.DeleteFunc(tokens, func(_ string, size int) bool { return size == 0 })
	for _, held := range slices.Sorted(maps.Keys(tokens)) {
		if tokens[held] > tokens[reason] {
			reason = held
		}
	}
	return reason, tokens
}
