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
	// beat is how often a silent stream says that it is there: proxies cut what is
	// silent for a minute.
	beat = 20 * time.Second
	// checkEvery is how often a stream looks by itself whether its reader is still
	// logged in; a notice of a login that ended has it look at once.
	checkEvery   = time.Minute
	writeTimeout = 10 * time.Second
)

// Check returns nil while who opened a stream may go on reading it, and
// tenants.ErrLoginEnded once they may never again.
type Check func(c echo.Context, who tenants.Principal) error

// Handler answers the requests for streams.
type Handler struct {
	hub   *Hub
	check Check
	beat  time.Duration
}

// New returns a Handler for the streams of a hub.
func New(hub *Hub, check Check) *Handler { return &Handler{hub: hub, check: check, beat: beat} }

// Stream tells a page what happens in its workspace, as server-sent events, until the
// page is left, its login ends or the process stops: "exchanges" with how many were
// recorded since the event before, "missed" where some may not have been told, "end"
// where the reader may read no more.
func (h *Handler) Stream(c echo.Context, who tenants.Principal) error {
	one, end, err := h.hub.subscribe(who.Workspace.ID)
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
		return nil // the page is left
	}
	beats := time.NewTicker(h.beat)
	defer beats.Stop()
	checked := time.Now()
	for {
		var found news
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
				return nil // the page asks again, where it may
			}
		}
		if err := say(c, found.event()); err != nil {
			return nil // the page is left
		}
	}
}

// event writes news as events; with none, as a comment.
func (n news) event() string {
	switch {
	case n.missed:
		return "event: missed\ndata:\n\n"
	case n.exchanges > 0:
		return fmt.Sprintf("event: exchanges\ndata: %d\n\n", n.exchanges)
	}
	return ":\n\n"
}

// say writes to a stream at once, and gives up on a reader that takes nothing.
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
