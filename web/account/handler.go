// Package account is the page on which people change their address and password and see their logins.
package account

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler handles the page's requests.
type Handler struct {
	service tenants.Accounts
	cookies tenants.Cookies
	local   bool
	now     func() time.Time
}

// New returns a Handler. local means that mails are kept here instead of sent.
func New(service tenants.Accounts, cookies tenants.Cookies, local bool, now func() time.Time) *Handler {
	return &Handler{service: service, cookies: cookies, local: local, now: now}
}

// Show shows the page.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(*model) {})
}

// Password changes the password.
func (h *Handler) Password(c echo.Context, who tenants.Principal) error {
	err := h.service.ChangePassword(c.Request().Context(), who, c.FormValue("current_password"), c.FormValue("password"))
	return h.done(c, who, "password", err, func(m *model) { m.Password = newPasswordForm(err) })
}

// Email sends a link to the person's new address.
func (h *Handler) Email(c echo.Context, who tenants.Principal) error {
	email := c.FormValue("email")
	err := h.service.AskEmail(c.Request().Context(), who, c.FormValue(emailPassword), email)
	return h.done(c, who, "asked", err, func(m *model) { m.Email = newEmailForm(email, err) })
}

// Verification sends another link to verify the address.
func (h *Handler) Verification(c echo.Context, who tenants.Principal) error {
	err := h.service.SendVerification(c.Request().Context(), who.User)
	return h.done(c, who, "sent", err, func(m *model) { m.Error = formError(err) })
}

// EndLogin ends one login.
func (h *Handler) EndLogin(c echo.Context, who tenants.Principal) error {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return tenants.ErrNotFound
	}
	if err := h.service.EndLogin(c.Request().Context(), who.User.ID, id); err != nil {
		return err
	}
	if id == who.Login.ID {
		return h.leave(c)
	}
	return layout.Redirect(c, paths.With(paths.Account, "done", "ended"))
}

// EndLogins ends all logins, including this one.
func (h *Handler) EndLogins(c echo.Context, who tenants.Principal) error {
	if err := h.service.EndLogins(c.Request().Context(), who.User.ID); err != nil {
		return err
	}
	return h.leave(c)
}

// Delete deletes the account.
func (h *Handler) Delete(c echo.Context, who tenants.Principal) error {
	keys := c.FormValue("keys")
	err := h.service.DeleteAccount(c.Request().Context(), who, c.FormValue(deletePassword), keys != components.KeepKeys)
	if err == nil {
		h.cookies.Clear(c.Response())
		return layout.Redirect(c, paths.Home)
	}
	status := http.StatusConflict
	switch only, is := errors.AsType[tenants.OnlyOwner](err); {
	case is:
		return h.page(c, who, status, func(m *model) { m.Delete = newDeleteForm(keys, nil, onlyOwnerText(only.Workspace)) })
	case errors.Is(err, tenants.ErrOperator):
		return h.page(c, who, status, func(m *model) { m.Delete = newDeleteForm(keys, nil, operatorText) })
	}
	return h.done(c, who, "", err, func(m *model) { m.Delete = newDeleteForm(keys, err, "") })
}

// leave redirects a person whose login has ended to the login page.
func (h *Handler) leave(c echo.Context) error {
	h.cookies.Clear(c.Response())
	return layout.Redirect(c, paths.LogIn)
}

// done redirects to the page, or shows it with the errors.
func (h *Handler) done(c echo.Context, who tenants.Principal, what string, err error, change func(*model)) error {
	if err == nil {
		return layout.Redirect(c, paths.With(paths.Account, "done", what))
	}
	if status := layout.FormStatus(c, err); status != 0 {
		return h.page(c, who, status, change)
	}
	return err
}

// page shows the page after applying change.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	logins, err := h.service.Logins(c.Request().Context(), who.User.ID)
	if err != nil {
		return err
	}
	page := newModel(who, logins, h.now())
	page.Local, page.Done = h.local, doneText(c.QueryParam("done"), who.User.Email)
	page.Mailed = c.QueryParam("done") == "asked" || c.QueryParam("done") == "sent"
	change(&page)
	return layout.Page(c, status, layout.Frame{Title: "Account", Section: layout.Account, Who: who}, view(page))
}
