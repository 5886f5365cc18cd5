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

// useModel tells whether a key has been used.
type useModel struct {
	ID       uuid.UUID
	Name     string
	Works    bool      // requests with it are accepted
	Received string    // summary of its newest request; "" before the first
	Request  uuid.UUID // its id

	Clients []clients.Client // how to use it, for a page of its own
}

// Use waits for the first request with a key and shows it, as a page of its own or as a part of a waiting
// page.
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
