package ipc

import (
	"maps"
	"slices"

	"palimpsest/pipeline"
)

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
