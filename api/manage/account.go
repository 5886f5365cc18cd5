package manage

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// accountHandler serves people, their accounts and their logins.
type accountHandler struct {
	identity tenants.Identity
	cookies  tenants.Cookies
	version  string
}

func (h accountHandler) register(group *echo.Group, a *authorizer) {
	group.POST("/signup", h.signUp, a.sameOrigin)
	group.POST("/login", h.logIn, a.sameOrigin)
	group.POST("/logout", h.logOut, a.sameOrigin)

	group.GET("/me", a.known(h.me))

	group.POST("/account/reset", h.ask(h.identity.AskReset), a.sameOrigin)
	group.POST("/account/reset/confirm", h.confirmReset, a.sameOrigin)
	group.POST("/account/verification", h.ask(h.identity.AskVerification), a.sameOrigin)
	group.POST("/account/verification/confirm", h.confirmEmail, a.sameOrigin)
	group.PUT("/account/password", a.as(tenants.Enter, person(h.putPassword)))
	group.PUT("/account/email", a.as(tenants.Enter, person(h.putEmail)))
	group.GET("/account/logins", a.as(tenants.Enter, person(h.listLogins)))
	group.DELETE("/account/logins", a.as(tenants.Enter, person(h.endLogins)))
	group.DELETE("/account/logins/:id", a.as(tenants.Enter, person(h.endLogin)))
}

type userJSON struct {
	ID        uuid.UUID `json:"id"`
	Email     string    `json:"email"`
	CreatedAt time.Time `json:"created_at"`

	VerifiedAt *time.Time `json:"verified_at"` // null if the address is not verified
}

type workspaceJSON struct {
	ID   tenants.WorkspaceID `json:"id"`
	Name string              `json:"name,omitempty"` // "" for an API key
}

// meJSON describes the sender of a request.
type meJSON struct {
	User       *userJSON        `json:"user"`      // null for an API key
	Workspace  *workspaceJSON   `json:"workspace"` // null without a workspace
	Role       tenants.Role     `json:"role,omitempty"`
	Workspaces []membershipJSON `json:"workspaces,omitempty"` // all that the user belongs to
	APIKey     *uuid.UUID       `json:"api_key,omitempty"`
	Key        *keyJSON         `json:"key,omitempty"`     // the API key's current rights
	Version    string           `json:"version,omitempty"` // of the server; for an API key
}

func meOf(principal tenants.Principal) meJSON {
	me := meJSON{
		User: &userJSON{ID: principal.User.ID, Email: principal.User.Email, CreatedAt: principal.User.CreatedAt, VerifiedAt: principal.User.VerifiedAt},
		Role: principal.Role, Workspaces: membershipsOf(principal),
	}
	if !principal.Workspace.ID.IsZero() {
		me.Workspace = &workspaceJSON{ID: principal.Workspace.ID, Name: principal.Workspace.Name}
	}
	return me
}

func (h accountHandler) signUp(c echo.Context) error {
	asked, err := readJSON[struct {
		Email     string `json:"email"`
		Password  string `json:"password"`
		Workspace string `json:"workspace"`
	}](c)
	if err != nil {
		return err
	}
	request := c.Request()
	principal, token, err := h.identity.SignUp(fromPlace(c), asked.Email, asked.Password, asked.Workspace, request.UserAgent())
	if errors.Is(err, tenants.ErrMailSent) {
		return c.JSON(http.StatusAccepted, mailSent())
	}
	if err != nil {
		return err
	}
	h.cookies.Set(c.Response(), token)
	return c.JSON(http.StatusCreated, meOf(principal))
}

func (h accountHandler) logIn(c echo.Context) error {
	asked, err := readJSON[struct {
		Email    string `json:"email"`
		Password string `json:"password"`
		Code     string `json:"code"`
	}](c)
	if err != nil {
		return err
	}
	request := c.Request()
	principal, token, err := h.identity.LogIn(fromPlace(c), asked.Email, asked.Password, c.RealIP(), request.UserAgent())
	if needed, is := errors.AsType[tenants.CodeNeeded](err); is && asked.Code != "" {
		principal, token, err = h.identity.LogInWithCode(fromPlace(c), needed.Pending, asked.Code, request.UserAgent())
		if errors.Is(err, tenants.ErrWrongLogin) {
			return errors.Join(errWrongCode, err)
		}
	}
	if err != nil {
		return err
	}
	h.cookies.Set(c.Response(), token)
	return c.JSON(http.StatusOK, meOf(principal))
}

// logOut ends the cookie's login and deletes the cookie, valid or not.
func (h accountHandler) logOut(c echo.Context) error {
	ctx := c.Request().Context()
	if token := h.cookies.Token(c.Request()); token != "" {
		principal, err := h.identity.Authenticate(ctx, token)
		if err == nil {
			err = h.identity.LogOut(ctx, principal.Login)
		}
		if err != nil && !errors.Is(err, tenants.ErrLoginEnded) {
			return err
		}
	}
	h.cookies.Clear(c.Response())
	return c.NoContent(http.StatusNoContent)
}

func (h accountHandler) me(c echo.Context, who caller) error {
	if who.isKey() {
		if !who.may(tenants.Enter) {
			return who.denied()
		}
		key := keyOf(who.key)
		return c.JSON(http.StatusOK, meJSON{Workspace: &workspaceJSON{ID: who.workspace}, APIKey: &who.key.ID, Key: &key, Version: h.version})
	}
	return c.JSON(http.StatusOK, meOf(who.principal))
}
