package requests

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/columns"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// columnsOf are the columns that can be hidden.
func columnsOf() []columns.Column {
	return []columns.Column{
		{Name: "session", Label: "Session, client"}, {Name: "model", Label: "Model"}, {Name: "key", Label: "Key, provider key"}, {Name: "status", Label: "Status"}, {Name: "received", Label: "Received"}, {Name: "sent", Label: "Sent"}, {Name: "cached", Label: "Cached"}, {Name: "overhead", Label: "Overhead"}, {Name: "upstream", Label: "Upstream"}, {Name: "cost", Label: "Cost"}, {Name: "modules", Label: "Modules"},
	}
}

// SaveColumns keeps which columns the person sees.
func (h *Handler) SaveColumns(c echo.Context, who tenants.Principal) error {
	form, err := c.FormParams()
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	if err := h.columns.Save(c.Request().Context(), who, form); err != nil {
		return err
	}
	return layout.Redirect(c, columns.Back(paths.Requests, form))
}
