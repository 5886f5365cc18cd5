package sessions

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
		{Name: "requests", Label: "Requests"}, {Name: "window", Label: "Window filled"}, {Name: "levels", Label: "Levels sent"}, {Name: "received", Label: "Received"}, {Name: "sent", Label: "Sent"}, {Name: "saved", Label: "Saved"}, {Name: "net", Label: "Net"}, {Name: "reach", Label: "Reach"}, {Name: "last", Label: "Last request"},
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
	return layout.Redirect(c, columns.Back(paths.Sessions, form))
}
