package identity

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Codes logs in who has a second factor.
type Codes interface {
	// LogInWithCode returns the token of a new login, or tenants.ErrWrongLogin for a
	// wrong code, tenants.ErrLoginEnded for a log-in that waited too long, or a
	// tenants.TooMany.
	LogInWithCode(ctx context.Context, pending, code, userAgent string) (tenants.Principal, string, error)
}

const (
	codeTitle = "Enter your code"
	late      = "late" // the code came when the log-in had waited too long
)

// codeModel is the form for the code.
type codeModel struct {
	Code        components.FieldModel
	Next, Error string
}

func codeForm(next string, err error) codeModel {
	model := codeModel{
		Code: components.FieldModel{Label: "Code", Name: "code", Hint: "The six digits that your app shows, or one of your recovery codes."}, Next: next,
	}
	if many, is := errors.AsType[tenants.TooMany](err); is {
		model.Error = "Too many wrong codes. Try again in " + components.Span(many.Wait) + "."
	} else if err != nil {
		model.Code.Error = "The code is wrong, too old, or was used."
	}
	return model
}

// askCode leads whoever knows the password of somebody with a second factor to the
// form for the code.
func (h *Handler) askCode(c echo.Context, pending, next string) error {
	h.cookies.SetPending(c.Response(), pending)
	return layout.Redirect(c, paths.With(paths.LogInCode, "next", next))
}

// CodeForm shows the form for the code.
func (h *Handler) CodeForm(c echo.Context) error {
	if h.cookies.Pending(c.Request()) == "" {
		return layout.Redirect(c, paths.LogIn)
	}
	return layout.Plain(c, http.StatusOK, codeTitle, codeView(codeForm(c.QueryParam("next"), nil)))
}

// Code logs in somebody who knows the password and has a code, and leads to where they
// wanted to go.
func (h *Handler) Code(c echo.Context) error {
	request, next := c.Request(), c.FormValue("next")
	_, token, err := h.service.LogInWithCode(from(c), h.cookies.Pending(request), c.FormValue("code"), request.UserAgent())
	switch {
	case errors.Is(err, tenants.ErrLoginEnded):
		h.cookies.ClearPending(c.Response())
		return layout.Redirect(c, paths.With(paths.LogIn, "done", late, "next", next))
	case errors.Is(err, tenants.ErrTooMany):
		if wait, known := errors.AsType[tenants.TooMany](err); known {
			c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(wait.Wait.Seconds())+1))
		}
		return layout.Plain(c, http.StatusTooManyRequests, codeTitle, codeView(codeForm(next, err)))
	case errors.Is(err, tenants.ErrWrongLogin):
		return layout.Plain(c, http.StatusUnprocessableEntity, codeTitle, codeView(codeForm(next, err)))
	case err != nil:
		return err
	}
	h.cookies.ClearPending(c.Response())
	h.cookies.Set(c.Response(), token)
	return layout.Redirect(c, paths.Local(next))
}
