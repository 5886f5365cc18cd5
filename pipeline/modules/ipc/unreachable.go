package ipc

import (
	"maps"
	"slices"

	"palimpsest/pipeline"
)

// What keeps a prompt above its target; the reasons of target_unreachable.
const (
	heldByNewest   = "newest_turn"
	heldByFixed    = "system_prompt_and_tools"
	heldByPins     = "pinned_turns"
	heldByProvider = "provider_compaction"
	heldByCalls    = "unanswered_calls"
	heldByLoop     = "tool_loop_opener"
	heldByTyped    = "typed_message"
	heldByMessages = "kept_messages"
)

// unreachable reports that the prompt goes out above its target, and what most of it is
// that no level makes shorter.
func unreachable(draft *pipeline.Draft, size int) {
	draft.Report.Compression = pipeline.Unreachable
	reason, counts := obstacle(&draft.View, size)
	counts["size"], counts["limit"] = size, draft.Limit
	draft.Event("target_unreachable", reason, counts)
}

// obstacle returns what takes most of what cannot be compressed in a prompt of size
// tokens, and how many o200k tokens each obstacle takes.
func obstacle(exchange *pipeline.View, size int) (reason string, tokens map[string]int) {
	p := newPlanner(exchange, nil, nil, size, byTheRules) // nothing is counted
	tokens = map[string]int{heldByFixed: exchange.Fixed}
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
