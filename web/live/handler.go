package live

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

const (
	// beat is the interval of keep-alives on an idle stream, because proxies close a stream after an idle
	// minute.
	beat = 20 * time.Second
	// checkEvery is how often a stream checks on its own whether its reader is still logged in. A notice of
	// an ended login makes it check at once.
	checkEvery   = time.Minute
	writeTimeout = 10 * time.Second
)

// Check returns nil while the reader of a stream may read it, and tenants.ErrLoginEnded once they may no
// longer read it.
type Check func(c echo.Context, who tenants.Principal) error

// Handler handles requests for streams.
type Handler struct {
	hub   *Hub
	check Check
	beat  time.Duration
}

// New returns a Handler for the streams of a hub.
func New(hub *Hub, check Check) *Handler { return &Handler{hub: hub, check: check, beat: beat} }

// Stream sends the workspace's events to a page as server-sent events, until the page is left, its login ends
// or the process stops: "exchanges" with the number recorded since the last event, "missed" if some may have
// been lost, and "end" if the reader may read no more.
func (h *Handler) Stream(c echo.Context, who tenants.Principal) error {
	one, end, err := h.hub.subscribe(who.Workspace.ID, tenants.VisibleIn(c.Request().Context()))
	if err != nil {
		c.Response().Header().Set("Retry-After", "30")
		return c.NoContent(http.StatusServiceUnavailable)
	}
	defer end()
	// The connection may serve further requests.
	defer func() { _ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Time{}) }()
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
	if err := say(c, ": open\n\n"); err != nil {
		return nil // the page was left
	}
	beats := time.NewTicker(h.beat)
	defer beats.Stop()
	checked := time.Now()
	for {
		var found pending
		select {
		case <-c.Request().Context().Done():
			return nil
		case <-h.hub.closed:
			return nil
		case <-beats.C:
			found.recheck = time.Since(checked) >= checkEvery
		case <-one.wake:
			found = h.hub.take(one)
		}
		if found.recheck {
			checked = time.Now()
			err := h.check(c, who)
			if errors.Is(err, tenants.ErrLoginEnded) {
				_ = say(c, "event: end\ndata:\n\n") // the stream ends either way
			}
			if err != nil {
				return nil // the page reconnects if it may
			}
		}
		if err := say(c, found.event()); err != nil {
			return nil // the page was left
		}
	}
}

// event writes them as events, or as a comment without any.
func (n pending) event() string {
	switch {
	case n.missed:
		return "event: missed\ndata:\n\n"
	case n.exchanges > 0:
		return fmt.Sprintf("event: exchanges\ndata: %d\n\n", n.exchanges)
	}
	return ":\n\n"
}

// say writes to a stream at once, with a deadline for readers that do not receive.
func say(c echo.Context, text string) error {
	control := http.NewResponseController(c.Response())
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := c.Response().Write([]byte(text)); err != nil {
		return err
	}
	return control.Flush()
}
