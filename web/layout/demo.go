package layout

import "github.com/labstack/echo/v4"

// demoKey is where a request carries that all data was made up.
const demoKey = "palimpsest.demo"

// WithDemo has the page that answers a request say that what it shows was made up and,
// to who is not logged in, how to log in.
func WithDemo(c echo.Context, logIn string) { c.Set(demoKey, logIn) }

// demoOf returns how to log in where all data was made up; empty: it was not.
func demoOf(c echo.Context) string {
	logIn, _ := c.Get(demoKey).(string)
	return logIn
}
