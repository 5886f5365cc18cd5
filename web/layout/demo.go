package layout

import "github.com/labstack/echo/v4"

// demoKey is the request's key for the demo notice.
const demoKey = "palimpsest.demo"

// WithDemo makes the response's page say that its data was made up and, without a login, how to log in.
func WithDemo(c echo.Context, logIn string) { c.Set(demoKey, logIn) }

// demoOf returns how to log in to a demo; "" if this is not one.
func demoOf(c echo.Context) string {
	logIn, _ := c.Get(demoKey).(string)
	return logIn
}
