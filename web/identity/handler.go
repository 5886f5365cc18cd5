// Package identity is the pages to sign up, log in and log out.
package identity

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler handles the pages' requests.
type Handler struct {
	service  tenants.Identity
	passkeys tenants.Passkeys
	cookies  tenants.Cookies
	local    bool
	log      *slog.Logger
}

// New returns a Handler. local means that mails are kept here instead of sent; log gets the reasons for
// refused passkeys.
func New(service tenants.Identity, passkeys tenants.Passkeys, cookies tenants.Cookies, local bool, log *slog.Logger) *Handler {
	return &Handler{service: service, passkeys: passkeys, cookies: cookies, local: local, log: log}
}

// SignUpForm shows the sign-up form.
func (h *Handler) SignUpForm(c echo.Context) error {
	if c.QueryParam("sent") != "" {
		return layout.Plain(c, http.StatusOK, signUpTitle, signUpSentView(h.local))
	}
	takes, err := h.service.TakesSignUps(c.Request().Context())
	if err != nil {
		return err
	}
	if !takes {
		return layout.Plain(c, http.StatusOK, signUpTitle, signUpInvitedView())
	}
	return layout.Plain(c, http.StatusOK, signUpTitle, signUpView(signUpForm("", "", nil)))
}

// SignUp creates an account and logs it in.
func (h *Handler) SignUp(c echo.Context) error {
	request := c.Request()
	email, workspace := c.FormValue("email"), c.FormValue("workspace")
	_, token, err := h.service.SignUp(from(c), email, c.FormValue("password"), workspace, request.UserAgent())
	status := statusOf(c, err)
	switch {
	case errors.Is(err, tenants.ErrMailSent):
		return layout.Redirect(c, paths.With(paths.SignUp, "sent", "1"))
	case errors.Is(err, tenants.ErrInviteOnly):
		return layout.Plain(c, http.StatusForbidden, signUpTitle, signUpInvitedView())
	case status != 0:
		return layout.Plain(c, status, signUpTitle, signUpView(signUpForm(email, workspace, err)))
	case err != nil:
		return err
	}
	h.cookies.Set(c.Response(), token)
	return layout.Redirect(c, paths.Overview)
}

// LogInForm shows the login form.
func (h *Handler) LogInForm(c echo.Context) error {
	form := h.logInForm("", c.QueryParam("next"), nil)
	if c.QueryParam("done") == late {
		form.Error = "The code came too late. Log in again."
	}
	return layout.Plain(c, http.StatusOK, logInTitle, logInView(form, done(c.QueryParam("done"))))
}

// LogIn logs a person in and redirects to their destination.
func (h *Handler) LogIn(c echo.Context) error {
	request := c.Request()
	email, next := c.FormValue("email"), c.FormValue("next")
	_, token, err := h.service.LogIn(request.Context(), email, c.FormValue("password"), c.RealIP(), request.UserAgent())
	if needed, is := errors.AsType[tenants.CodeNeeded](err); is {
		return h.askCode(c, needed.Pending, next)
	}
	return h.opened(c, token, email, next, err)
}

// opened redirects a logged-in person to their destination, or shows the form's errors.
func (h *Handler) opened(c echo.Context, token, email, next string, err error) error {
	switch {
	case errors.Is(err, tenants.ErrWrongLogin), errors.Is(err, tenants.ErrPasskey):
		return layout.Plain(c, http.StatusUnprocessableEntity, logInTitle, logInView(h.logInForm(email, next, err), ""))
	case errors.Is(err, tenants.ErrTooMany):
		if wait, known := errors.AsType[tenants.TooMany](err); known {
			c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(wait.Wait.Seconds())+1))
		}
		return layout.Plain(c, http.StatusTooManyRequests, logInTitle, logInView(h.logInForm(email, next, err), ""))
	case err != nil:
		return err
	}
	h.cookies.Set(c.Response(), token)
	return layout.Redirect(c, paths.Local(next))
}

// LogOut ends the login, on this server and in the browser.
func (h *Handler) LogOut(c echo.Context, who tenants.Principal) error {
	if err := h.service.LogOut(c.Request().Context(), who.Login); err != nil {
		return err
	}
	h.cookies.Clear(c.Response())
	return layout.Redirect(c, paths.LogIn)
}
