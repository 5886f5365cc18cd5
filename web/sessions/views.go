package sessions

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// Views asks for a name of what the list is narrowed to, and shows the person's views.
func (h *Handler) Views(c echo.Context, who tenants.Principal) error {
	return h.askView(c, who, http.StatusOK, "", nil)
}

// SaveView saves what the list is narrowed to.
func (h *Handler) SaveView(c echo.Context, who tenants.Principal) error {
	form, err := c.FormParams()
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	path, err := h.views.Save(c.Request().Context(), who, c.QueryParams(), filters(layout.Zone(c.Request())), form)
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		return h.askView(c, who, http.StatusUnprocessableEntity, form.Get("name"), invalid)
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, path)
}

// DeleteView deletes a view of the person.
func (h *Handler) DeleteView(c echo.Context, who tenants.Principal) error {
	path, err := h.views.Delete(c.Request().Context(), who, c.QueryParams(), filters(layout.Zone(c.Request())), c.Param("id"))
	if err != nil {
		return err
	}
	return layout.Redirect(c, path)
}

// askView shows the form above the list, with what was typed and why it was refused.
func (h *Handler) askView(c echo.Context, who tenants.Principal, status int, typed string, refused error) error {
	shown, err := h.model(c, who)
	if err != nil {
		return err
	}
	h.views.Ask(&shown.Views, c.QueryParams(), filters(shown.Asked.Zone), typed, refused)
	return h.page(c, who, status, shown)
}
