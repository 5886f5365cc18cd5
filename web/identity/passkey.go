package identity

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// PasskeyOptions returns the options for the browser's passkey request.
func (h *Handler) PasskeyOptions(c echo.Context) error {
	options, held, err := h.passkeys.Ask()
	return h.askPasskey(c, options, held, err)
}

// CodePasskeyOptions does the same after the password.
func (h *Handler) CodePasskeyOptions(c echo.Context) error {
	options, held, err := h.passkeys.AskSecond(c.Request().Context(), h.cookies.Pending(c.Request()))
	return h.askPasskey(c, options, held, err)
}

func (h *Handler) askPasskey(c echo.Context, options []byte, held string, err error) error {
	if errors.Is(err, tenants.ErrPasskey) || errors.Is(err, tenants.ErrLoginEnded) {
		return tenants.ErrNotFound
	}
	if err != nil {
		return err
	}
	h.cookies.SetPasskey(c.Response(), held)
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSONBlob(http.StatusOK, options)
}

// Passkey logs in a person with a passkey and redirects to their destination.
func (h *Handler) Passkey(c echo.Context) error {
	held := h.cookies.TakePasskey(c.Response(), c.Request())
	token, err := h.passkeys.LogIn(from(c), held, c.FormValue("answer"), c.Request().UserAgent())
	h.note(c, err)
	return h.opened(c, token, "", c.FormValue("next"), err)
}

// CodePasskey logs in a person with the password and a passkey.
func (h *Handler) CodePasskey(c echo.Context) error {
	pending, held := h.cookies.Pending(c.Request()), h.cookies.TakePasskey(c.Response(), c.Request())
	token, err := h.passkeys.LogInSecond(from(c), pending, held, c.FormValue("answer"), c.Request().UserAgent())
	h.note(c, err)
	return h.followed(c, token, c.FormValue("next"), err)
}

// note logs the reason for a refused passkey.
func (h *Handler) note(c echo.Context, err error) {
	if errors.Is(err, tenants.ErrPasskey) {
		h.log.WarnContext(c.Request().Context(), "passkey is refused", "error", err)
	}
}

// passkeyText explains a refused passkey and names the alternative.
func passkeyText(err error, instead string) string {
	if errors.Is(err, tenants.ErrPasskeyCopied) {
		return "This passkey is blocked because a copy of it was used. Log in with your password and a recovery code, then remove it from your account."
	}
	return "The passkey was not accepted. Try again, or " + instead + "."
}
