package manage

import (
	"context"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// compaction is the body of a request to compact.
type compaction struct {
	Instructions string `json:"instructions"`
}

type orderJSON struct {
	Lane         uuid.UUID `json:"lane"`
	AskedAt      time.Time `json:"asked_at"`
	Instructions string    `json:"instructions,omitempty"`
}

// compact makes the lane's next request an epoch, whatever its size. It waits for that request because the
// client owns the prompt. It closes the lane's breaker.
func (h sessionHandler) compact(c echo.Context, who caller) error {
	if err := allowQuery(c, "lane"); err != nil {
		return err
	}
	var asked compaction
	if c.Request().ContentLength != 0 {
		var err error
		if asked, err = readJSON[compaction](c); err != nil {
			return err
		}
	}
	if utf8.RuneCountInString(asked.Instructions) > session.MaxInstructions {
		return tenants.Invalid{Field: "instructions", Message: fmt.Sprintf("must be at most %d characters long", session.MaxInstructions)}
	}
	detail, lane, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	order := session.Order{At: h.now().UTC().Truncate(time.Microsecond), By: who.author(), Instructions: asked.Instructions}
	change := tenants.Change{Action: tenants.CompactAsked, Target: detail.ID.String(), After: tenants.Fields{"lane": lane.ID.String()}}
	err = h.notes.noted(c, who, change, func(ctx context.Context, tenant tenants.Tenant) error {
		return h.sessions.Ask(ctx, tenant, lane.ID, order)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, orderJSON{Lane: lane.ID, AskedAt: order.At, Instructions: order.Instructions})
}
