package manage

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// Identity signs people up, logs them in and out and recognises them.
type Identity interface {
	Account

	// SignUp makes an account with a workspace of its own and logs it in. It
	// returns the login's token, or a tenants.Invalid or tenants.ErrEmailTaken; where
	// addresses must be verified first, tenants.ErrMailSent for each.
	SignUp(ctx context.Context, email, password, workspace, userAgent string) (tenants.Principal, string, error)

	// LogIn returns the login's token, or tenants.ErrWrongLogin or ErrTooMany, or a
	// tenants.CodeNeeded for someone with a second factor.
	LogIn(ctx context.Context, email, password, from, userAgent string) (tenants.Principal, string, error)

	// LogInWithCode returns the same for the token of a tenants.CodeNeeded and a code.
	LogInWithCode(ctx context.Context, pending, code, userAgent string) (tenants.Principal, string, error)

	// LogOut ends a login; one that has ended already is no error.
	LogOut(ctx context.Context, login tenants.Login) error

	// Confirm returns tenants.ErrWrongLogin if the password is not the user's, or
	// tenants.ErrTooMany.
	Confirm(ctx context.Context, user tenants.User, password, from string) error

	// Authenticate returns tenants.ErrLoginEnded for a token that is not valid.
	Authenticate(ctx context.Context, token string) (tenants.Principal, error)
}

type userJSON struct {
	ID        uuid.UUID `json:"id"`
	Email     string    `json:"email"`
	CreatedAt time.Time `json:"created_at"`

	VerifiedAt *time.Time `json:"verified_at"` // null: the address is not verified
}

type workspaceJSON struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name,omitempty"` // not for an API key
}

// meJSON is who a request comes from.
type meJSON struct {
	User       *userJSON        `json:"user"`      // null for an API key
	Workspace  *workspaceJSON   `json:"workspace"` // null for someone who belongs to none
	Role       tenants.Role     `json:"role,omitempty"`
	Workspaces []membershipJSON `json:"workspaces,omitempty"` // all that the user belongs to
	APIKey     *uuid.UUID       `json:"api_key,omitempty"`
}

func meOf(principal tenants.Principal) meJSON {
	me := meJSON{
		User: &userJSON{ID: principal.User.ID, Email: principal.User.Email, CreatedAt: principal.User.CreatedAt, VerifiedAt: principal.User.VerifiedAt},
		Role: principal.Role, Workspaces: membershipsOf(principal),
	}
	if principal.Workspace.ID != uuid.Nil {
		me.Workspace = &workspaceJSON{ID: principal.Workspace.ID, Name: principal.Workspace.Name}
	}
	return me
}

func (s *server) signUp(c echo.Context) error {
	asked, err := readJSON[struct {
		Email     string `json:"email"`
		Password  string `json:"password"`
		Workspace string `json:"workspace"`
	}](c)
	if err != nil {
		return err
	}
	request := c.Request()
	principal, token, err := s.Identity.SignUp(fromPlace(c), asked.Email, asked.Password, asked.Workspace, request.UserAgent())
	if errors.Is(err, tenants.ErrMailSent) {
		return c.JSON(http.StatusAccepted, mailSent())
	}
	if err != nil {
		return err
	}
	s.Cookies.Set(c.Response(), token)
	return c.JSON(http.StatusCreated, meOf(principal))
}

func (s *server) logIn(c echo.Context) error {
	asked, err := readJSON[struct {
		Email    string `json:"email"`
		Password string `json:"password"`
		Code     string `json:"code"`
	}](c)
	if err != nil {
		return err
	}
	request := c.Request()
	principal, token, err := s.Identity.LogIn(fromPlace(c), asked.Email, asked.Password, c.RealIP(), request.UserAgent())
	if needed, is := errors.AsType[tenants.CodeNeeded](err); is && asked.Code != "" {
		principal, token, err = s.Identity.LogInWithCode(fromPlace(c), needed.Pending, asked.Code, request.UserAgent())
		if errors.Is(err, tenants.ErrWrongLogin) {
			return errors.Join(errWrongCode, err)
		}
	}
	if err != nil {
		return err
	}
	s.Cookies.Set(c.Response(), token)
	return c.JSON(http.StatusOK, meOf(principal))
}

// logOut ends the cookie's login and takes the cookie back, valid or not.
func (s *server) logOut(c echo.Context) error {
	ctx := c.Request().Context()
	if token := s.Cookies.Token(c.Request()); token != "" {
		principal, err := s.Identity.Authenticate(ctx, token)
		if err == nil {
			err = s.Identity.LogOut(ctx, principal.Login)
		}
		if err != nil && !errors.Is(err, tenants.ErrLoginEnded) {
			return err
		}
	}
	s.Cookies.Clear(c.Response())
	return c.NoContent(http.StatusNoContent)
}

func (s *server) me(c echo.Context, who caller) error {
	if who.isKey() {
		if !who.may(tenants.Enter) {
			return who.denied()
		}
		return c.JSON(http.StatusOK, meJSON{Workspace: &workspaceJSON{ID: who.workspace}, APIKey: &who.key.ID})
	}
	return c.JSON(http.StatusOK, meOf(who.principal))
}
