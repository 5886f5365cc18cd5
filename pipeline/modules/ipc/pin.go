package ipc

import (
	"slices"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// bridge is the module whose inserts hold what a client's own summary has lost:
// nothing else in the prompt says it.
const bridge = "compaction-bridge"

// keepPinned keeps a turn as the client sent it if one of its messages is pinned.
// One that was compressed before comes back with the epoch.
func (p *planner) keepPinned(t *turn) {
	if p.rung < foldsPinned && p.isPinned(t.Turn) {
		t.floor, t.deepest, t.isFixed = 0, 0, true
	}
}

// isPinned reports whether a message of a turn is pinned, or has something in it
// that must not go.
func (p *planner) isPinned(bounds conversation.Turn) bool {
	at, _ := slices.BinarySearch(p.exchange.Pins, bounds.From)
	return at < len(p.exchange.Pins) && p.exchange.Pins[at] < bounds.To || slices.ContainsFunc(p.exchange.Inserts, func(insert session.Insert) bool {
		return insert.Module == bridge && bounds.From <= insert.Message && insert.Message < bounds.To
	})
}
