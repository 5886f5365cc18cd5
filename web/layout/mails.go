package layout

import "github.com/labstack/echo/v4"

// mailsKey is where a request carries that mails are kept here.
const mailsKey = "palimpsest.mails"

// WithMailsKept has the page that answers a request say where a mail is read that was not
// sent, as no mail server is set.
func WithMailsKept(c echo.Context) { c.Set(mailsKey, true) }

func areMailsKept(c echo.Context) bool {
	kept, _ := c.Get(mailsKey).(bool)
	return kept
}
