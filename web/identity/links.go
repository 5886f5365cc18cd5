package identity

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Open moves a link's secret from the address into a cookie, so that no other page or log sees it, and
// redirects to the page that uses it. It does not use up the link, because mail scanners open links too.
func (h *Handler) Open(to string) echo.HandlerFunc {
	return func(c echo.Context) error {
		h.cookies.SetLink(c.Response(), c.Param("secret"))
		c.Response().Header().Set(echo.HeaderReferrerPolicy, "no-referrer")
		c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
		return layout.Redirect(c, to)
	}
}

// ResetForm shows the form that requests a link to reset the password.
func (h *Handler) ResetForm(c echo.Context) error {
	return layout.Plain(c, http.StatusOK, resetTitle, askView(h.askForm(resetAsk(), "", c.QueryParam("sent") != "", nil)))
}

// Reset sends the link.
func (h *Handler) Reset(c echo.Context) error { return h.ask(c, resetAsk(), h.service.AskReset) }

// VerifyForm shows the form that requests another verification link.
func (h *Handler) VerifyForm(c echo.Context) error {
	return layout.Plain(c, http.StatusOK, verifyTitle, askView(h.askForm(verifyAsk(), "", c.QueryParam("sent") != "", nil)))
}

// Verify sends the link.
func (h *Handler) Verify(c echo.Context) error {
	return h.ask(c, verifyAsk(), h.service.AskVerification)
}

func (h *Handler) ask(c echo.Context, what askModel, ask func(ctx context.Context, email, from string) error) error {
	email := c.FormValue("email")
	err := ask(c.Request().Context(), email, c.RealIP())
	status := statusOf(c, err)
	switch {
	case err == nil:
		return layout.Redirect(c, paths.With(what.Path, "sent", "1"))
	case status == 0:
		return err
	}
	return layout.Plain(c, status, what.Title, askView(h.askForm(what, email, false, err)))
}

// statusOf returns the status of a form that is shown again; 0 for an error that the person can't fix. After
// too many attempts it sets how long to wait.
func statusOf(c echo.Context, err error) int {
	if errors.Is(err, tenants.ErrEmailTaken) {
		return http.StatusUnprocessableEntity
	}
	return layout.FormStatus(c, err)
}

// NewPasswordForm shows the form for a new password to a person who opened a reset link.
func (h *Handler) NewPasswordForm(c echo.Context) error {
	token, err := h.service.Link(c.Request().Context(), h.cookies.Link(c.Request()))
	if errors.Is(err, tenants.ErrLinkEnded) || err == nil && token.Kind != tenants.TokenReset {
		return ended(c, resetAsk())
	}
	if err != nil {
		return err
	}
	return layout.Plain(c, http.StatusOK, resetTitle, newPasswordView(newPasswordForm(token.Email, nil)))
}

// NewPassword sets the password.
func (h *Handler) NewPassword(c echo.Context) error {
	err := h.service.ResetPassword(from(c), h.cookies.Link(c.Request()), c.FormValue("password"))
	status := statusOf(c, err)
	switch {
	case errors.Is(err, tenants.ErrLinkEnded):
		return ended(c, resetAsk())
	case status != 0:
		return layout.Plain(c, status, resetTitle, newPasswordView(newPasswordForm("", err)))
	case err != nil:
		return err
	}
	h.cookies.ClearLink(c.Response())
	return layout.Redirect(c, paths.With(paths.LogIn, "done", "password"))
}

// ConfirmForm asks anyone who opened a link to confirm the address that it was sent to.
func (h *Handler) ConfirmForm(c echo.Context) error {
	token, err := h.service.Link(c.Request().Context(), h.cookies.Link(c.Request()))
	if errors.Is(err, tenants.ErrLinkEnded) || err == nil && token.Kind == tenants.TokenReset {
		return ended(c, verifyAsk())
	}
	if err != nil {
		return err
	}
	return layout.Plain(c, http.StatusOK, verifyTitle, confirmView(token))
}

// Confirm confirms the address.
func (h *Handler) Confirm(c echo.Context) error {
	token, err := h.service.ConfirmEmail(from(c), h.cookies.Link(c.Request()))
	switch {
	case errors.Is(err, tenants.ErrLinkEnded), errors.Is(err, tenants.ErrEmailTaken):
		return ended(c, verifyAsk())
	case err != nil:
		return err
	}
	h.cookies.ClearLink(c.Response())
	done := "verified"
	if token.Kind == tenants.TokenEmail {
		done = "email"
	}
	// Without a login, the person is sent to log in first.
	return layout.Redirect(c, paths.With(paths.Account, "done", done))
}

// ended shows that a link is no longer valid, and how to get another.
func ended(c echo.Context, what askModel) error {
	return layout.Plain(c, http.StatusGone, "Link no longer works", endedView(what))
}

// from returns a request's context with its source, for a person who is not known yet.
func from(c echo.Context) context.Context {
	return tenants.WithActor(c.Request().Context(), tenants.Actor{From: c.RealIP()})
}
