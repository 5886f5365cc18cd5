package sessions

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// Views asks for a name of what the list is narrowed to, and shows the person's views.
func (h *Handler) Views(c echo.Context, who tenants.Principal) error {
	return h.askView(c, who, http.StatusOK, "", nil)
}

// SaveView saves what the list is narrowed to.
func (h *Handler) SaveView(c echo.Context, who tenants.Principal) error {
	return h.views.Save(c, who, h.askView)
}

// DeleteView deletes a view of the person.
func (h *Handler) DeleteView(c echo.Context, who tenants.Principal) error {
	return h.views.Delete(c, who)
}

// askView shows the form above the list, with what was typed and why it was refused.
func (h *Handler) askView(c echo.Context, who tenants.Principal, status int, typed string, refused error) error {
	shown, err := h.model(c, who)
	if err != nil {
		return err
	}
	h.views.Ask(c, &shown.Views, typed, refused)
	return h.page(c, who, status, shown)
}
