// Package passkey is the page on which people create, rename and remove their passkeys.
package passkey

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler handles the page's requests.
type Handler struct {
	service tenants.Passkeys
	cookies tenants.Cookies
	log     *slog.Logger
	now     func() time.Time
}

// New returns a Handler. log gets the reasons for refused passkeys.
func New(service tenants.Passkeys, cookies tenants.Cookies, log *slog.Logger, now func() time.Time) *Handler {
	return &Handler{service: service, cookies: cookies, log: log, now: now}
}

// Show shows the page.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Done = doneText(c.QueryParam("done")) })
}

// Start begins to create a passkey.
func (h *Handler) Start(c echo.Context, who tenants.Principal) error {
	name := c.FormValue(addName)
	held, err := h.service.Start(c.Request().Context(), who, name, c.FormValue(addPassword))
	if err != nil {
		return h.mend(c, who, err, func(m *model) { m.Add = addForm(name, err) })
	}
	h.cookies.SetPasskey(c.Response(), held)
	return layout.Redirect(c, paths.NewPasskey)
}

// New shows the page that asks the browser to create the passkey.
func (h *Handler) New(c echo.Context, who tenants.Principal) error {
	name, options, err := h.service.Options(c.Request().Context(), who, h.cookies.Passkey(c.Request()))
	if errors.Is(err, tenants.ErrPasskey) {
		return layout.Redirect(c, paths.Passkeys) // it expired
	}
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.create(name, options, h.service.Origin()) })
}

// Register stores the passkey that the browser has created.
func (h *Handler) Register(c echo.Context, who tenants.Principal) error {
	held := h.cookies.TakePasskey(c.Response(), c.Request())
	codes, err := h.service.Register(c.Request().Context(), who, held, c.FormValue("answer"))
	if errors.Is(err, tenants.ErrPasskey) {
		h.log.WarnContext(c.Request().Context(), "passkey is refused", "error", err)
	}
	if err != nil {
		return h.mend(c, who, err, func(m *model) { m.Add = addForm("", err) })
	}
	if len(codes) == 0 {
		return layout.Redirect(c, paths.With(paths.Passkeys, "done", "added"))
	}
	return h.codes(c, who, codes, "added")
}

// RenewCodes shows new recovery codes.
func (h *Handler) RenewCodes(c echo.Context, who tenants.Principal) error {
	codes, err := h.service.RenewCodes(c.Request().Context(), who, c.FormValue(renewPassword))
	if err != nil {
		return h.mend(c, who, err, func(m *model) { m.Renew = renewForm(err) })
	}
	return h.codes(c, who, codes, "")
}

// codes shows recovery codes, once.
func (h *Handler) codes(c echo.Context, who tenants.Principal, codes []string, done string) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return h.page(c, who, http.StatusOK, func(m *model) { m.Codes, m.Done = codes, doneText(done) })
}

// AskName asks for a new name.
func (h *Handler) AskName(c echo.Context, who tenants.Principal) error {
	return h.dialog(c, who, http.StatusOK, func(m *model, passkey tenants.Passkey) { m.Rename = renameForm(passkey, passkey.Name, nil) })
}

// Rename renames a passkey.
func (h *Handler) Rename(c echo.Context, who tenants.Principal) error {
	name := c.FormValue(newName)
	return h.change(c, who, "renamed", func(ctx context.Context, id uuid.UUID) error { return h.service.Rename(ctx, who, id, name) },
		func(m *model, passkey tenants.Passkey, err error) { m.Rename = renameForm(passkey, name, err) })
}

// ConfirmRemove asks for the password.
func (h *Handler) ConfirmRemove(c echo.Context, who tenants.Principal) error {
	return h.dialog(c, who, http.StatusOK, func(m *model, passkey tenants.Passkey) { m.Remove = removeForm(passkey, nil) })
}

// Remove removes a passkey, so that it no longer logs anyone in.
func (h *Handler) Remove(c echo.Context, who tenants.Principal) error {
	return h.change(c, who, "removed", func(ctx context.Context, id uuid.UUID) error {
		return h.service.Remove(ctx, who, id, c.FormValue(removeField))
	},
		func(m *model, passkey tenants.Passkey, err error) { m.Remove = removeForm(passkey, err) })
}

// change changes the path's passkey, or shows its dialog with the errors.
func (h *Handler) change(c echo.Context, who tenants.Principal, done string, work func(ctx context.Context, id uuid.UUID) error, mend func(*model, tenants.Passkey, error)) error {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return tenants.ErrNotFound
	}
	err = work(c.Request().Context(), id)
	if err == nil {
		return layout.Redirect(c, paths.With(paths.Passkeys, "done", done))
	}
	status := h.status(c, err)
	if status == 0 {
		return err
	}
	return h.dialog(c, who, status, func(m *model, passkey tenants.Passkey) { mend(m, passkey, err) })
}

// dialog shows the page with a dialog about the path's passkey.
func (h *Handler) dialog(c echo.Context, who tenants.Principal, status int, open func(*model, tenants.Passkey)) error {
	passkeys, _, err := h.service.List(c.Request().Context(), who.User.ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(passkeys, func(passkey tenants.Passkey) bool { return passkey.ID.String() == c.Param("id") })
	if at < 0 {
		return tenants.ErrNotFound
	}
	return h.page(c, who, status, func(m *model) { open(m, passkeys[at]) })
}

// mend shows the page with the errors.
func (h *Handler) mend(c echo.Context, who tenants.Principal, err error, change func(*model)) error {
	status := h.status(c, err)
	if status == 0 {
		return err
	}
	return h.page(c, who, status, change)
}

// status returns the status of an error that a person can fix; 0 for others.
func (h *Handler) status(c echo.Context, err error) int {
	if errors.Is(err, tenants.ErrPasskey) || errors.Is(err, tenants.ErrConflict) {
		return http.StatusUnprocessableEntity
	}
	return layout.FormStatus(c, err)
}

// page shows the page after applying change.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	passkeys, factors, err := h.service.List(c.Request().Context(), who.User.ID)
	if err != nil {
		return err
	}
	page := newModel(passkeys, factors, h.service.IsOn(), h.now())
	change(&page)
	frame := layout.Frame{Title: "Passkeys", Section: layout.Account, Who: who, Breadcrumbs: []layout.Breadcrumb{{Title: "Account", Path: paths.Account}, {Title: "Passkeys"}}}
	return layout.Page(c, status, frame, view(page))
}
