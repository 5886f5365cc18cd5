// Package sessions is the list of a workspace's sessions.
package sessions

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
	"palimpsest/web/views"
)

const (
	pageSize  = 25
	sparkSize = 60 // requests in a picture of a session
	atOnce    = 4  // pictures read at the same time
)

// Store lists, reads and deletes sessions.
type Store interface {
	// Sessions returns a page, the most recently active first, or
	// session.ErrCursor.
	Sessions(ctx context.Context, workspace tenants.WorkspaceID, filter session.Filter) (session.Page, error)

	// Count returns how many sessions pass a filter, session.MostCounted at most.
	Count(ctx context.Context, workspace tenants.WorkspaceID, filter session.Filter) (int, error)

	// Session and Delete return session.ErrNotFound for what the workspace does not have.
	Session(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (session.Detail, error)
	Delete(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error
}

// Exchanges lists exchanges, the newest first.
type Exchanges interface {
	Exchanges(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.ExchangeFilter) ([]tenants.Exchange, string, error)
}

// Readers says what somebody may read of what was said.
type Readers interface {
	Reader(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID) (tenants.Reader, error)

	// DataSettings returns what the workspace says of its data.
	DataSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.DataSettings, error)
}

// APIKeys lists a workspace's API keys.
type APIKeys interface {
	APIKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.APIKey, error)
}

// Log notes who changed what, in the transaction of the change.
type Log interface {
	Together(ctx context.Context, workspace tenants.WorkspaceID, fn func(ctx context.Context) error) error
	Note(ctx context.Context, workspace tenants.WorkspaceID, change tenants.Change) error
}

// Deps are what the page reads and changes.
type Deps struct {
	Sessions  Store
	Exchanges Exchanges
	Readers   Readers
	APIKeys   APIKeys
	Searcher  archive.Searcher
	Changes   Log
	Views     views.Store

	Log *slog.Logger
	Now func() time.Time
}

// Handler answers the requests to the page.
type Handler struct {
	deps  Deps
	views views.List
}

// New returns a Handler.
func New(deps Deps) *Handler {
	return &Handler{deps: deps, views: views.List{Store: deps.Views, Of: tenants.SessionViews, Path: paths.Sessions, Log: deps.Log}}
}

// Show shows a page of the sessions that match.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	model, err := h.model(c, who)
	if err != nil {
		return err
	}
	if model.Asked.Own.IsWrong() {
		return h.page(c, who, http.StatusUnprocessableEntity, model)
	}
	return h.page(c, who, http.StatusOK, model)
}

func (h *Handler) page(c echo.Context, who tenants.Principal, status int, model model) error {
	return layout.Page(c, status, layout.Frame{Title: "Sessions", Section: layout.Sessions, Who: who}, view(model))
}

// model reads what the page shows.
func (h *Handler) model(c echo.Context, who tenants.Principal) (model, error) {
	ctx, asked, now := c.Request().Context(), askOf(c), h.deps.Now()
	reader, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return model{}, err
	}
	filter := asked.filter(now)
	filter.Masked, filter.Shown = !reader.All, reader.Keys
	page, err := h.deps.Sessions.Sessions(ctx, who.Workspace.ID, filter)
	if err != nil {
		return model{}, err
	}
	shown := model{
		Asked: asked, Reader: reader, Next: page.Next, Now: now, Rows: make([]row, len(page.Sessions)),
		Deleted: deletedOf(c.QueryParam("deleted")), MayDelete: who.Role.May(tenants.DeleteSessions),
		MayExport: who.Role.May(tenants.ReadArchive) && !reader.None(),
	}
	shown.Views = h.views.Model(ctx, who, c.QueryParams(), filters(asked.Zone))
	var keysErr, settingsErr error
	var settings tenants.DataSettings
	shown.Keys, keysErr = h.deps.APIKeys.APIKeys(ctx, who.Workspace.ID)
	settings, settingsErr = h.deps.Readers.DataSettings(ctx, who.Workspace.ID)
	shown.Unkept = components.Unkept(settings, shown.Keys)
	shown.BesideFailed = layout.Reference(ctx, h.deps.Log, "sessions", "beside",
		errors.Join(keysErr, settingsErr, h.count(ctx, who.Workspace.ID, filter, &shown)))
	var pictures errgroup.Group
	pictures.SetLimit(atOnce)
	for i, overview := range page.Sessions {
		pictures.Go(func() error {
			shown.Rows[i] = h.row(ctx, who.Workspace.ID, overview)
			return nil
		})
	}
	shown.Found = h.search(ctx, who.Workspace.ID, reader, asked, filter)
	_ = pictures.Wait() // a picture that fails is left out
	return shown, nil
}

// count counts the sessions of each tab, and of the whole workspace.
func (h *Handler) count(ctx context.Context, workspace tenants.WorkspaceID, filter session.Filter, shown *model) error {
	filter.Cursor = ""
	for _, show := range parts() {
		filter.Show = show
		n, err := h.deps.Sessions.Count(ctx, workspace, filter)
		if err != nil {
			shown.Counts, shown.Total = []int{unknown, unknown, unknown, unknown}, unknown
			return err
		}
		shown.Counts = append(shown.Counts, n)
	}
	total, err := h.deps.Sessions.Count(ctx, workspace, session.Filter{})
	if err != nil {
		total = unknown
	}
	shown.Total = total
	return err
}

// row returns a session with what its newest requests held.
func (h *Handler) row(ctx context.Context, workspace tenants.WorkspaceID, overview session.Overview) row {
	newest, _, err := h.deps.Exchanges.Exchanges(ctx, workspace, tenants.ExchangeFilter{Session: overview.ID, Limit: sparkSize})
	if err != nil {
		h.deps.Log.WarnContext(ctx, "requests of a session", "session", overview.ID, "error", err)
	}
	return newRow(overview, newest)
}
