// Package invite is the page of an invitation's link.
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

// Handler handles the page's requests.
type Handler struct {
	invitations tenants.Invitations
	cookies     tenants.Cookies
}

// New returns a Handler.
func New(invitations tenants.Invitations, cookies tenants.Cookies) *Handler {
	return &Handler{invitations: invitations, cookies: cookies}
}

// Show asks a person who opens a link whether to join, with their current login or after logging in or
// signing up. It shows the same whether the invited address has an account or not.
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

// Accept adds the logged-in person with the invited address to the workspace.
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

// SignUp creates an account with the invited address and adds it to the workspace.
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

// ended answers an expired or withdrawn link, whatever the reason.
func ended(c echo.Context) error { return layout.Plain(c, http.StatusNotFound, title, endedView()) }

// model is the page's data.
type model struct {
	Invitation tenants.Invitation
	Secret     string
	LoggedIn   string // the reader's address; "" without a login

	Password, Workspace components.FieldModel
	Taken               bool // someone tried to sign up although the address has an account
}

func newModel(c echo.Context, invitation tenants.Invitation, who tenants.Principal) model {
	return model{
		Invitation: invitation, Secret: c.Param("secret"), LoggedIn: who.User.Email,
		Password:  components.FieldModel{Label: "Password", Name: "password", Hint: tenants.PasswordHint()},
		Workspace: components.FieldModel{Label: "Your own workspace", Name: "workspace", Hint: "Optional. Leave it empty to join only."},
	}
}

// explain shows the input's errors. A password is never sent back.
func (m *model) explain(workspace string, err error) {
	m.Workspace.Value, m.Taken = workspace, errors.Is(err, tenants.ErrEmailTaken)
	components.FieldErrors(err, &m.Password, &m.Workspace)
}
