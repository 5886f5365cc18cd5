package layout

import "github.com/labstack/echo/v4"

// mailsKey is the request's key for the notice that mails are kept here.
const mailsKey = "palimpsest.mails"

// WithMailsKept makes the response's page tell where to read unsent mails, because no mail server is
// configured.
func WithMailsKept(c echo.Context) { c.Set(mailsKey, true) }

func areMailsKept(c echo.Context) bool {
	kept, _ := c.Get(mailsKey).(bool)
	return kept
}
