package live

import "time"

// Every has silent streams say that they are there at another interval.
func (h *Handler) Every(interval time.Duration) *Handler {
	return &Handler{hub: h.hub, check: h.check, beat: interval}
}
