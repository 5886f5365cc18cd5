// Package requests is the list of requests through the proxy, and the page of one request.
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
	// counted is the limit of counting all requests when none matches.
	counted = 10_000
)

// Deps are the page's sources.
type Deps struct {
	Exchanges    tenants.Exchanges
	APIKeys      tenants.APIKeys
	ProviderKeys tenants.ProviderKeys
	Costs        sessiondb.Browser
	Data         tenants.Data
	Keys         *archive.Keys // nil disables reading the providers' error texts
	Archive      archive.Reader
	Audit        tenants.AuditLog

	Resending

	PublicURL string
	Log       *slog.Logger
	Now       func() time.Time
}

// Resending is the dependencies of resending a request.
type Resending struct {
	Resend Resend         // optional: without it, requests are not resent
	Models *tokens.Models // optional: without them, the cost of resending is not shown
	Prices Prices         // optional: without it, list prices apply
}

// Prices returns a provider key's prices that override the list prices.
type Prices func(ctx context.Context, workspace tenants.WorkspaceID, key uuid.UUID) (tokens.Overrides, error)

// Handler handles the page's requests.
type Handler struct{ deps Deps }

// New returns a Handler.
func New(deps Deps) *Handler { return &Handler{deps: deps} }

// List shows a page of the matching requests, with one of them open if the address names it.
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

// model reads the list's data.
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

// name fills in the keys' names. A failure is only logged, because the page can show ids instead.
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

// nameUsers fills in the applications' own ids of end users, if they are stored and the person may see them.
func (h *Handler) nameUsers(ctx context.Context, who tenants.Principal, exchanges []tenants.Exchange) error {
	reader, err := h.deps.Data.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return err
	}
	return tenants.NameEndUsers(exchanges, reader, func(users []string) (map[string]string, error) {
		return h.deps.Costs.EndUserNames(ctx, who.Workspace.ID, users)
	})
}

// choose fills in the clients and models of the form's choices. A failure is only logged, and the form offers
// no choices then.
func (h *Handler) choose(ctx context.Context, who tenants.Principal, model *model) {
	var err error
	if model.Clients, model.Models, err = h.deps.Exchanges.ExchangeNames(ctx, who.Workspace.ID); err != nil {
		h.deps.Log.WarnContext(ctx, "clients and models of requests", "error", err)
	}
}

// failed logs an error and returns its reference in the log; "" without an error.
func (h *Handler) failed(ctx context.Context, card string, err error) string {
	return layout.Reference(ctx, h.deps.Log, "requests", card, err)
}
