package live

import (
	"time"

	"palimpsest/tenants"
)

// Every has silent streams say that they are there at another interval.
func (h *Handler) Every(interval time.Duration) *Handler {
	return &Handler{hub: h.hub, check: h.check, beat: interval}
}

// Subscribe opens a stream of a workspace without a page, and returns what ends it.
func (h *Hub) Subscribe(workspace tenants.WorkspaceID) (end func(), err error) {
	_, end, err = h.subscribe(workspace, tenants.Visible{All: true})
	return end, err
}
