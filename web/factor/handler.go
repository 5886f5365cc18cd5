// Package factor is the page on which people set up a second factor.
package factor

import (
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler handles the page's requests.
type Handler struct {
	service tenants.SecondFactors
	now     func() time.Time
}

// New returns a Handler.
func New(service tenants.SecondFactors, now func() time.Time) *Handler {
	return &Handler{service: service, now: now}
}

// Show shows the page.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Done = doneText(c.QueryParam("done")) })
}

// Start creates a secret for the person's app.
func (h *Handler) Start(c echo.Context, who tenants.Principal) error {
	err := h.service.StartSecondFactor(c.Request().Context(), who, c.FormValue("password"))
	if errors.Is(err, tenants.ErrConflict) {
		err = nil // the page shows that it is on
	}
	return h.done(c, who, "", err, func(m *model) { m.Start = newStartForm(err) })
}

// Image draws the pending secret as a QR code.
func (h *Handler) Image(c echo.Context, who tenants.Principal) error {
	setUp, err := h.service.SetUp(c.Request().Context(), who.User)
	if err != nil {
		return err
	}
	image, err := draw(setUp.URL)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.Blob(http.StatusOK, "image/svg+xml", image)
}

// Confirm turns on the second factor and shows the recovery codes.
func (h *Handler) Confirm(c echo.Context, who tenants.Principal) error {
	codes, err := h.service.ConfirmSecondFactor(c.Request().Context(), who, c.FormValue("code"))
	if errors.Is(err, tenants.ErrNotFound) {
		return layout.Redirect(c, paths.SecondFactor) // the secret expired
	}
	return h.codes(c, who, codes, err, func(m *model) { m.Confirm = newConfirmForm(err) })
}

// Renew shows new recovery codes.
func (h *Handler) Renew(c echo.Context, who tenants.Principal) error {
	codes, err := h.service.RenewRecoveryCodes(c.Request().Context(), who, c.FormValue("password"), c.FormValue("code"))
	return h.codes(c, who, codes, err, func(m *model) { m.Change = newChangeForm(err) })
}

// Remove turns off the second factor.
func (h *Handler) Remove(c echo.Context, who tenants.Principal) error {
	err := h.service.RemoveSecondFactor(c.Request().Context(), who, c.FormValue("password"), c.FormValue("code"))
	return h.done(c, who, "off", err, func(m *model) { m.Change = newChangeForm(err) })
}

// codes shows recovery codes, once, or the page with the errors.
func (h *Handler) codes(c echo.Context, who tenants.Principal, codes []string, err error, change func(*model)) error {
	if err != nil {
		return h.done(c, who, "", err, change)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return h.page(c, who, http.StatusOK, func(m *model) { m.Codes = codes })
}

// done redirects to the page, or shows it with the errors.
func (h *Handler) done(c echo.Context, who tenants.Principal, what string, err error, change func(*model)) error {
	if err == nil {
		return layout.Redirect(c, paths.With(paths.SecondFactor, "done", what))
	}
	if status := layout.FormStatus(c, err); status != 0 {
		return h.page(c, who, status, change)
	}
	return err
}

// page shows the page after applying change.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	ctx := c.Request().Context()
	page := newModel(h.now())
	factor, err := h.service.SecondFactor(ctx, who.User.ID)
	switch {
	case errors.Is(err, tenants.ErrNotFound):
	case err != nil:
		return err
	case factor.IsOn():
		page.State, page.Factor = on, factor
	default:
		setUp, err := h.service.SetUp(ctx, who.User)
		if err != nil {
			return err
		}
		page.State, page.Secret = waiting, spaced(setUp.Secret)
	}
	change(&page)
	return layout.Page(c, status, layout.Frame{Title: "Second factor", Section: layout.Account, Who: who}, view(page))
}
