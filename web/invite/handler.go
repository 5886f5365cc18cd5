// Package invite is the page that the link of an invitation leads to.
package invite

import (
	"errors"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler answers the requests to the page.
type Handler struct {
	invitations tenants.Invitations
	cookies     tenants.Cookies
}

// New returns a Handler.
func New(invitations tenants.Invitations, cookies tenants.Cookies) *Handler {
	return &Handler{invitations: invitations, cookies: cookies}
}

// Show asks anyone who opens a link whether to join, with the account that they are
// logged in with, or with one that they log in to or sign up for. It shows the same
// whether the invited address has an account or not.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	found, err := h.invitations.Find(c.Request().Context(), c.Param("secret"))
	if errors.Is(err, tenants.ErrInvitation) {
		return ended(c)
	}
	if err != nil {
		return err
	}
	return page(c, http.StatusOK, newModel(c, found, who))
}

// Accept lets someone who is logged in with the invited address in.
func (h *Handler) Accept(c echo.Context, who tenants.Principal) error {
	err := h.invitations.Accept(c.Request().Context(), c.Param("secret"), who)
	switch {
	case errors.Is(err, tenants.ErrInvitation):
		return ended(c)
	case errors.Is(err, tenants.ErrOtherAddress):
		return h.Show(c, who)
	case err != nil:
		return err
	}
	return layout.Redirect(c, paths.Overview)
}

// SignUp creates an account with the invited address and lets it in.
func (h *Handler) SignUp(c echo.Context, who tenants.Principal) error {
	request, secret := c.Request(), c.Param("secret")
	if who.User.ID != uuid.Nil {
		return layout.Redirect(c, paths.Invitation(secret))
	}
	_, token, err := h.invitations.SignUp(request.Context(), secret, c.FormValue("password"), c.FormValue("workspace"), request.UserAgent())
	_, mendable := errors.AsType[tenants.Invalid](err)
	switch {
	case errors.Is(err, tenants.ErrInvitation):
		return ended(c)
	case errors.Is(err, tenants.ErrMailSent):
		return layout.Plain(c, http.StatusOK, title, sentView())
	case mendable || errors.Is(err, tenants.ErrEmailTaken):
		found, findErr := h.invitations.Find(request.Context(), secret)
		if findErr != nil {
			return findErr
		}
		model := newModel(c, found, who)
		model.explain(c.FormValue("workspace"), err)
		return page(c, http.StatusUnprocessableEntity, model)
	case err != nil:
		return err
	}
	h.cookies.Set(c.Response(), token)
	return layout.Redirect(c, paths.Overview)
}

const title = "Invitation"

func page(c echo.Context, status int, model model) error {
	return layout.Plain(c, status, title, view(model))
}

// ended answers a link that lets nobody in, whatever the reason.
func ended(c echo.Context) error { return layout.Plain(c, http.StatusNotFound, title, endedView()) }

// model is the page.
type model struct {
	Invitation tenants.Invitation
	Secret     string
	LoggedIn   string // address that the reader is logged in with; empty: not

	Password, Workspace components.FieldModel
	Taken               bool // the address has an account, which someone tried to sign up for
}

func newModel(c echo.Context, invitation tenants.Invitation, who tenants.Principal) model {
	return model{
		Invitation: invitation, Secret: c.Param("secret"), LoggedIn: who.User.Email,
		Password:  components.FieldModel{Label: "Password", Name: "password", Hint: tenants.PasswordHint()},
		Workspace: components.FieldModel{Label: "Workspace of your own", Name: "workspace", Hint: "Optional. Leave it empty to join only."},
	}
}

// explain says what is wrong with what was typed. A password is never sent back.
func (m *model) explain(workspace string, err error) {
	m.Workspace.Value, m.Taken = workspace, errors.Is(err, tenants.ErrEmailTaken)
	components.FieldErrors(err, &m.Password, &m.Workspace)
}
