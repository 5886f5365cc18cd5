package ipc

import (
	"slices"

	"palimpsest/pipeline/conversation"
)

// keepPinned keeps a turn as the client sent it if one of its messages is pinned.
// One that was compressed before comes back with the epoch.
func (p *planner) keepPinned(t *turn) {
	if p.isPinned(t.Turn) {
		t.floor, t.deepest, t.isFixed = 0, 0, true
	}
}

// isPinned reports whether a message of a turn is pinned.
func (p *planner) isPinned(bounds conversation.Turn) bool {
	at, _ := slices.BinarySearch(p.exchange.Pins, bounds.From)
	return at < len(p.exchange.Pins) && p.exchange.Pins[at] < bounds.To
}
