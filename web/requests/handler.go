// Package requests is the page of the single requests that went through the proxy: the
// list, and one with everything that is known of it.
package requests

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"palimpsest/pipeline/session/sessiondb"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

const (
	pageSize = 50
	// counted is how far requests are counted where none matches.
	counted = 10_000
)

// Deps are what the page reads.
type Deps struct {
	Exchanges    tenants.Exchanges
	APIKeys      tenants.APIKeys
	ProviderKeys tenants.ProviderKeys
	Costs        sessiondb.Browser
	Data         tenants.Data
	Keys         *archive.Keys // nil: what providers said cannot be read
	Archive      archive.Reader
	Audit        tenants.AuditLog

	Resending

	PublicURL string
	Log       *slog.Logger
	Now       func() time.Time
}

// Resending is what it takes to send a request again.
type Resending struct {
	Resend Resend         // optional: without it, nothing is sent again
	Models *tokens.Models // optional: without them, what sending again costs is not said
	Prices Prices         // optional: list prices hold without it
}

// Prices returns what holds in place of list prices for requests that go out with a provider key.
type Prices func(ctx context.Context, workspace tenants.WorkspaceID, key uuid.UUID) (tokens.Overrides, error)

// Handler answers the requests to the page.
type Handler struct{ deps Deps }

// New returns a Handler.
func New(deps Deps) *Handler { return &Handler{deps: deps} }

// List shows a page of the requests that match, with one of them opened if the address
// names it.
func (h *Handler) List(c echo.Context, who tenants.Principal) error {
	model, err := h.model(c, who)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if model.Invalid {
		status = http.StatusUnprocessableEntity
	}
	return layout.Page(c, status, frame(who), view(model))
}

// model reads what the list shows.
func (h *Handler) model(c echo.Context, who tenants.Principal) (model, error) {
	ctx := c.Request().Context()
	model := newModel(c.QueryParams(), who.Role, layout.Zone(c.Request()), h.deps.Now())
	h.name(ctx, who, &model)
	h.choose(ctx, who, &model)
	if model.Invalid {
		return model, nil
	}
	if user := model.Query.Get("end_user"); user != "" {
		model.Filter.EndUser = session.EndUserIDs(who.Workspace.ID, user)
	}
	rows, next, err := h.deps.Exchanges.Exchanges(ctx, who.Workspace.ID, model.Filter)
	if invalid, is := errors.AsType[tenants.Invalid](err); is && invalid.Field == "cursor" {
		return model, session.ErrCursor
	}
	if err != nil {
		model.Failed = h.failed(ctx, "list", err)
		return model, nil
	}
	model.Next = next
	if err := h.nameUsers(ctx, who, rows); err != nil {
		return model, err
	}
	for i := range rows {
		model.Rows = append(model.Rows, newRow(&rows[i], model.Names))
	}
	if len(rows) == 0 {
		if model.Count, err = h.deps.Exchanges.CountExchanges(ctx, who.Workspace.ID, counted+1); err != nil {
			return model, err
		}
	}
	if id, err := uuid.Parse(model.Query.Get("open")); err == nil {
		exchange, err := h.deps.Exchanges.Exchange(ctx, who.Workspace.ID, id)
		if err != nil {
			return model, err
		}
		if model.Opened, err = h.open(ctx, who, &exchange, &model); err != nil {
			return model, err
		}
	}
	return model, nil
}

// Show shows one request.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return tenants.ErrNotFound
	}
	_, opened, _, err := h.one(c.Request().Context(), who, id)
	if err != nil {
		return err
	}
	return h.showOne(c, who, http.StatusOK, opened)
}

// showOne shows the page of one request.
func (h *Handler) showOne(c echo.Context, who tenants.Principal, status int, o *opened) error {
	page := frame(who)
	page.Title = "Request " + o.id()
	page.Breadcrumbs = []layout.Breadcrumb{{Title: "Requests", Path: paths.Requests}, {Title: o.id()}}
	return layout.Page(c, status, page, showView(o))
}

func frame(who tenants.Principal) layout.Frame {
	return layout.Frame{Title: "Requests", Section: layout.Requests, Who: who}
}

// name fills in what keys are called. Without it the page shows ids: it is worth no
// failure.
func (h *Handler) name(ctx context.Context, who tenants.Principal, model *model) {
	keys, keysErr := h.deps.APIKeys.APIKeys(ctx, who.Workspace.ID)
	for _, key := range keys {
		model.Names[key.ID] = key.Name
		model.Keys = append(model.Keys, key)
	}
	var providersErr error
	if who.Role.May(tenants.ReadConfig) {
		var providers []tenants.ProviderKey
		providers, providersErr = h.deps.ProviderKeys.ProviderKeys(ctx, who.Workspace.ID)
		for _, provider := range providers {
			model.Names[provider.ID] = provider.Name
		}
	}
	if err := errors.Join(keysErr, providersErr); err != nil {
		h.deps.Log.WarnContext(ctx, "names of keys", "error", err)
	}
}

// nameUsers fills in the applications' own ids of end users, where they are kept and the person may see them.
func (h *Handler) nameUsers(ctx context.Context, who tenants.Principal, exchanges []tenants.Exchange) error {
	reader, err := h.deps.Data.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return err
	}
	return tenants.NameEndUsers(exchanges, reader, func(users []string) (map[string]string, error) {
		return h.deps.Costs.EndUserNames(ctx, who.Workspace.ID, users)
	})
}

// choose fills in which clients and models can be chosen. Without it the form offers
// none: it is worth no failure.
func (h *Handler) choose(ctx context.Context, who tenants.Principal, model *model) {
	var err error
	if model.Clients, model.Models, err = h.deps.Exchanges.ExchangeNames(ctx, who.Workspace.ID); err != nil {
		h.deps.Log.WarnContext(ctx, "clients and models of requests", "error", err)
	}
}

// failed returns the reference under which a failure is in the log; empty if there is
// none.
func (h *Handler) failed(ctx context.Context, card string, err error) string {
	return layout.Reference(ctx, h.deps.Log, "requests", card, err)
}
