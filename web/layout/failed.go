package layout

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// Reference logs why a part of a page could not be read, and returns the log's reference for the page; "" if
// err is nil.
func Reference(ctx context.Context, log *slog.Logger, page, card string, err error) string {
	if err == nil {
		return ""
	}
	reference, _, _ := strings.Cut(uuid.NewString(), "-")
	log.ErrorContext(ctx, "card failed", "page", page, "card", card, "reference", reference, "error", err)
	return reference
}

// FormStatus returns the status of a form that is shown again after an error: of a tenants.TooMany, with the
// time to wait as a header, or of a tenants.Invalid. It is 0 for an error that the person can't fix.
func FormStatus(c echo.Context, err error) int {
	if many, is := errors.AsType[tenants.TooMany](err); is {
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(max(1, int(math.Ceil(many.Wait.Seconds())))))
		return http.StatusTooManyRequests
	}
	if _, is := errors.AsType[tenants.Invalid](err); is {
		return http.StatusUnprocessableEntity
	}
	return 0
}

// demoKey is the request's key for the demo notice.
const demoKey = "palimpsest.demo"

// WithDemo makes the response's page say that its data was made up and, without a login, how to log in.
func WithDemo(c echo.Context, logIn string) { c.Set(demoKey, logIn) }

// demoOf returns how to log in to a demo; "" if this is not one.
func demoOf(c echo.Context) string {
	logIn, _ := c.Get(demoKey).(string)
	return logIn
}

// mailsKey is the request's key for the notice that mails are kept here.
const mailsKey = "palimpsest.mails"

// WithMailsKept makes the response's page tell where to read unsent mails, because no mail server is
// configured.
func WithMailsKept(c echo.Context) { c.Set(mailsKey, true) }

func areMailsKept(c echo.Context) bool {
	kept, _ := c.Get(mailsKey).(bool)
	return kept
}
