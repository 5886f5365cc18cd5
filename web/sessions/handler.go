// Package sessions is the list of a workspace's sessions.
package sessions

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

const (
	pageSize  = 25
	sparkSize = 60 // requests in a picture of a session
	atOnce    = 4  // pictures read at the same time
)

// Store lists sessions.
type Store interface {
	// Sessions returns a page, the most recently active first, or
	// session.ErrCursor.
	Sessions(ctx context.Context, workspace tenants.WorkspaceID, filter session.Filter) (session.Page, error)
}

// Exchanges lists exchanges, the newest first.
type Exchanges interface {
	Exchanges(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.ExchangeFilter) ([]tenants.Exchange, string, error)
}

// Readers says what somebody may read of what was said.
type Readers interface {
	Reader(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID) (tenants.Reader, error)
}

// Handler answers the requests to the page.
type Handler struct {
	sessions  Store
	readers   Readers
	exchanges Exchanges
	log       *slog.Logger
	now       func() time.Time
}

// New returns a Handler.
func New(sessions Store, exchanges Exchanges, readers Readers, log *slog.Logger, now func() time.Time) *Handler {
	return &Handler{sessions: sessions, readers: readers, exchanges: exchanges, log: log, now: now}
}

// Show shows a page of the sessions that match.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	filter := session.Filter{
		Query: c.QueryParam("q"), Client: c.QueryParam("client"), Model: c.QueryParam("model"),
		Cursor: c.QueryParam("cursor"), Limit: pageSize,
	}
	reader, err := h.readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return err
	}
	filter.Masked, filter.Shown = !reader.All, reader.Keys
	page, err := h.sessions.Sessions(ctx, who.Workspace.ID, filter)
	if err != nil {
		return err
	}
	model := model{Filter: filter, Reader: reader, Next: page.Next, Now: h.now(), Rows: make([]row, len(page.Sessions))}
	if len(page.Sessions) == 0 && model.filtered() {
		others, err := h.sessions.Sessions(ctx, who.Workspace.ID, session.Filter{Limit: 1})
		if err != nil {
			return err
		}
		model.HasOthers = len(others.Sessions) > 0
	}
	var pictures errgroup.Group
	pictures.SetLimit(atOnce)
	for i, overview := range page.Sessions {
		pictures.Go(func() error {
			model.Rows[i] = h.row(ctx, who.Workspace.ID, overview)
			return nil
		})
	}
	_ = pictures.Wait() // a picture that fails is left out
	return layout.Page(c, http.StatusOK, layout.Frame{Title: "Sessions", Section: layout.Sessions, Who: who}, view(model))
}

// row returns a session with what its newest requests held.
func (h *Handler) row(ctx context.Context, workspace tenants.WorkspaceID, overview session.Overview) row {
	newest, _, err := h.exchanges.Exchanges(ctx, workspace, tenants.ExchangeFilter{Session: overview.ID, Limit: sparkSize})
	if err != nil {
		h.log.WarnContext(ctx, "requests of a session", "session", overview.ID, "error", err)
	}
	return newRow(overview, newest)
}
