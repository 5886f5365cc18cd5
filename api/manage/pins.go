package manage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

type pinJSON struct {
	Lane    uuid.UUID `json:"lane"`
	Message int       `json:"message"`
	By      uuid.UUID `json:"pinned_by"`
	At      time.Time `json:"pinned_at"`
}

// listPins lists the pins of a lane, including those of messages shared with the lane it forked from.
func (h sessionHandler) listPins(c echo.Context, who caller) error {
	if err := allowQuery(c, "lane"); err != nil {
		return err
	}
	_, lane, err := h.lane(c, who)
	if err != nil {
		return err
	}
	return h.answerPins(c, who, lane.ID)
}

// newPin is the body of a request to add a pin.
type newPin struct {
	Message *int `json:"message"`
}

// createPin pins the turn of a message: later epochs don't compress it, and the next one restores it if it
// was compressed.
func (h sessionHandler) createPin(c echo.Context, who caller) error {
	if err := allowQuery(c, "lane"); err != nil {
		return err
	}
	asked, err := readJSON[newPin](c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	detail, lane, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	if asked.Message == nil || *asked.Message < 0 || *asked.Message >= lane.Position {
		return tenants.Invalid{Field: "message", Message: fmt.Sprintf("must be the index of a message of the lane, from 0 to %d", lane.Position-1)}
	}
	pins, err := h.sessions.Pins(ctx, who.workspace, lane.ID)
	if err != nil {
		return err
	}
	if len(pins) >= session.MaxPins {
		return tenants.Invalid{Field: "message", Message: fmt.Sprintf("cannot be pinned: the lane has %d pins; take one away first", len(pins))}
	}
	pin := session.Pin{Lane: lane.ID, Message: *asked.Message, By: who.author()}
	err = h.notes.noted(c, who, pinChange(tenants.PinAdded, detail.ID, pin), func(ctx context.Context, tenant tenants.Tenant) error { return h.sessions.Pin(ctx, tenant, pin) })
	if err != nil {
		return err
	}
	return h.answerPins(c, who, lane.ID)
}

func (h sessionHandler) deletePin(c echo.Context, who caller) error {
	if err := allowQuery(c, "lane"); err != nil {
		return err
	}
	message, err := strconv.Atoi(c.Param("message"))
	if err != nil {
		return session.ErrNotFound
	}
	detail, lane, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	change := pinChange(tenants.PinRemoved, detail.ID, session.Pin{Lane: lane.ID, Message: message})
	err = h.notes.noted(c, who, change, func(ctx context.Context, tenant tenants.Tenant) error {
		return h.sessions.Unpin(ctx, tenant, lane.ID, message)
	})
	return done(c, err)
}

// pinSession pins a whole session: only an order compacts its prompts.
func (h sessionHandler) pinSession(c echo.Context, who caller) error {
	return h.changeSession(c, who, tenants.SessionPinned, func(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error {
		return h.sessions.PinSession(ctx, tenant, id, who.author())
	})
}

func (h sessionHandler) unpinSession(c echo.Context, who caller) error {
	return h.changeSession(c, who, tenants.SessionUnpinned, h.sessions.UnpinSession)
}

// changeSession makes a change of a whole session that the caller may read, and logs it.
func (h sessionHandler) changeSession(c echo.Context, who caller, action tenants.Action, change func(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error) error {
	if err := allowQuery(c); err != nil {
		return err
	}
	detail, _, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	return done(c, h.notes.noted(c, who, tenants.Change{Action: action, Target: detail.ID.String()}, func(ctx context.Context, tenant tenants.Tenant) error {
		return change(ctx, tenant, detail.ID)
	}))
}

func (h sessionHandler) answerPins(c echo.Context, who caller, lane uuid.UUID) error {
	pins, err := h.sessions.Pins(c.Request().Context(), who.workspace, lane)
	if err != nil {
		return err
	}
	data := make([]pinJSON, len(pins))
	for i, pin := range pins {
		data[i] = pinJSON{Lane: pin.Lane, Message: pin.Message, By: pin.By, At: pin.At}
	}
	return answerPage(c, data, "")
}

// pinChange is the audit log's entry about a pin.
func pinChange(action tenants.Action, of uuid.UUID, pin session.Pin) tenants.Change {
	fields := tenants.Fields{"lane": pin.Lane.String(), "message": strconv.Itoa(pin.Message)}
	change := tenants.Change{Action: action, Target: of.String(), After: fields}
	if action == tenants.PinRemoved {
		change.Before, change.After = fields, nil
	}
	return change
}
