package identity

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

const (
	codeTitle = "Second factor"
	late      = "late" // the code came after the pending login had expired
)

// codeModel is the form for the code.
type codeModel struct {
	Code        components.FieldModel
	Passkey     *components.PasskeyModel // nil unless the person has one
	Next, Error string
}

// codeForm returns the form with the errors of the last answer.
func codeForm(passkeys tenants.Passkeys, factors tenants.Factors, next string, err error) codeModel {
	model := codeModel{
		Code: components.FieldModel{Label: "Code", Name: "code", Hint: "The six digits shown in your app, or one of your recovery codes."}, Next: next,
	}
	if !factors.App {
		model.Code = components.FieldModel{Label: "Recovery code", Name: "code", Hint: "One of the codes shown with your first passkey."}
	}
	if factors.Passkeys > 0 && passkeys.IsOn() {
		model.Passkey = &components.PasskeyModel{
			Action: paths.CodePasskey, OptionsURL: paths.CodePasskeyOptions, Next: next, Button: "Use your passkey", Primary: true,
			Origin: passkeys.Origin(), Instead: "Type a code below.",
		}
	}
	switch many, tooMany := errors.AsType[tenants.TooMany](err); {
	case tooMany:
		model.Error = "Too many attempts. Try again in " + components.Span(many.Wait) + "."
	case errors.Is(err, tenants.ErrPasskey):
		model.Error = passkeyText(err, "type a code")
	case err != nil:
		model.Code.Error = "The code is wrong, too old, or was used."
	}
	return model
}

// askCode redirects a person who entered the password of an account with a second factor to the form for the
// code.
func (h *Handler) askCode(c echo.Context, pending, next string) error {
	h.cookies.SetPending(c.Response(), pending)
	return layout.Redirect(c, paths.With(paths.LogInCode, "next", next))
}

// CodeForm shows the form for the code.
func (h *Handler) CodeForm(c echo.Context) error {
	return h.codePage(c, http.StatusOK, c.QueryParam("next"), nil)
}

// Code logs in a person with the password and a code, and redirects to their destination.
func (h *Handler) Code(c echo.Context) error {
	request, next := c.Request(), c.FormValue("next")
	_, token, err := h.service.LogInWithCode(from(c), h.cookies.Pending(request), c.FormValue("code"), request.UserAgent())
	return h.followed(c, token, next, err)
}

// followed logs in a person who passed the second factor, or shows the errors.
func (h *Handler) followed(c echo.Context, token, next string, err error) error {
	switch {
	case errors.Is(err, tenants.ErrLoginEnded):
		return h.late(c, next)
	case errors.Is(err, tenants.ErrTooMany):
		if wait, known := errors.AsType[tenants.TooMany](err); known {
			c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(wait.Wait.Seconds())+1))
		}
		return h.codePage(c, http.StatusTooManyRequests, next, err)
	case errors.Is(err, tenants.ErrWrongLogin), errors.Is(err, tenants.ErrPasskey):
		return h.codePage(c, http.StatusUnprocessableEntity, next, err)
	case err != nil:
		return err
	}
	h.cookies.ClearPending(c.Response())
	h.cookies.Set(c.Response(), token)
	return layout.Redirect(c, paths.Local(next))
}

// codePage shows the second-factor form if a password was entered before.
func (h *Handler) codePage(c echo.Context, status int, next string, err error) error {
	pending := h.cookies.Pending(c.Request())
	if pending == "" {
		return layout.Redirect(c, paths.LogIn)
	}
	factors, findErr := h.service.PendingFactors(c.Request().Context(), pending)
	if errors.Is(findErr, tenants.ErrLoginEnded) {
		return h.late(c, next)
	}
	if findErr != nil {
		return findErr
	}
	return layout.Plain(c, status, codeTitle, codeView(codeForm(h.passkeys, factors, next, err)))
}

// late redirects back to the password.
func (h *Handler) late(c echo.Context, next string) error {
	h.cookies.ClearPending(c.Response())
	return layout.Redirect(c, paths.With(paths.LogIn, "done", late, "next", next))
}
