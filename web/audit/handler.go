// Package audit is the page of a workspace's audit log.
package audit

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// pageSize is the number of entries on a page.
const pageSize = 50

// Handler handles the page's requests.
type Handler struct {
	store    tenants.AuditLog
	defaults pipeline.Layer
	now      func() time.Time
}

// New returns a Handler. defaults is the pipeline of a workspace without one of its own.
func New(store tenants.AuditLog, defaults pipeline.Layer, now func() time.Time) *Handler {
	return &Handler{store: store, defaults: defaults, now: now}
}

// Show shows a page of the matching entries.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	model := model{
		Actor: strings.TrimSpace(c.QueryParam("actor")), Action: c.QueryParam("action"), Now: h.now(), Zone: layout.Zone(c.Request()),
		From: newDay("from", "From", c.QueryParam("from")), To: newDay("to", "To", c.QueryParam("to")), Cursor: c.QueryParam("cursor"),
	}
	filter, ok := model.filter()
	if !ok {
		return layout.Page(c, http.StatusUnprocessableEntity, frame(who), view(model))
	}
	if model.Cursor != "" {
		var err error
		if filter.Before, err = uuid.Parse(model.Cursor); err != nil {
			return session.ErrCursor
		}
	}
	filter.Limit = pageSize + 1
	entries, err := h.store.Audit(ctx, who.Workspace.ID, filter)
	if err != nil {
		return err
	}
	if len(entries) > pageSize {
		entries = entries[:pageSize]
		model.Next = entries[pageSize-1].ID.String()
	}
	for i := range entries {
		model.Rows = append(model.Rows, newRow(&entries[i], h.defaults))
	}
	model.CSV = model.download(filter)
	return layout.Page(c, http.StatusOK, frame(who), view(model))
}

func frame(who tenants.Principal) layout.Frame {
	return layout.Frame{Title: "Audit", Section: layout.Audit, Who: who}
}
