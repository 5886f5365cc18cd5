package keys

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/clients"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// useModel is whether a key was used.
type useModel struct {
	ID       uuid.UUID
	Name     string
	Works    bool      // requests with it are let in
	Received string    // what is known of its newest request; empty if none has come
	Request  uuid.UUID // that it is

	Clients []clients.Client // how to use it, on a page of its own
}

// Use shows whether a request with a key has come, and waits for it: a page of its own,
// or for a page that waits, that part of it.
func (h *Handler) Use(c echo.Context, who tenants.Principal) error {
	key, err := h.named(c, who)
	if err != nil {
		return err
	}
	use, err := h.use(c.Request().Context(), who, key)
	if err != nil {
		return err
	}
	if layout.IsPartial(c) {
		return layout.Fragment(c, http.StatusOK, usePart(use))
	}
	frame := layout.Frame{Title: use.Name, Section: layout.Keys, Who: who, Breadcrumbs: []layout.Breadcrumb{{Title: "API keys", Path: paths.Keys}, {Title: use.Name}}}
	return layout.Page(c, http.StatusOK, frame, usePage(use))
}

func (h *Handler) use(ctx context.Context, who tenants.Principal, key tenants.APIKey) (useModel, error) {
	state, _ := stateOf(key, h.config.Now())
	use := useModel{ID: key.ID, Name: key.Name, Works: key.RevokedAt == nil && state != stateExpired, Clients: clients.All(h.config.PublicURL)}
	newest, _, err := h.exchanges.Exchanges(ctx, who.Workspace.ID, tenants.ExchangeFilter{APIKey: key.ID, Limit: 1})
	if err != nil || len(newest) == 0 {
		return use, err
	}
	use.Received, use.Request = components.Received(&newest[0]), newest[0].ID
	return use, nil
}
