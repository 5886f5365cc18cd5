package web

import (
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// hashed redirects from an address with the application's own id of an end user to the one with its hash, so
// that links and the browser's history do not contain the id.
func hashed(show func(c echo.Context, who tenants.Principal) error) func(c echo.Context, who tenants.Principal) error {
	return func(c echo.Context, who tenants.Principal) error {
		query := c.QueryParams()
		given := query.Get("end_user")
		if given == "" || session.IsEndUserID(given) {
			return show(c, who)
		}
		query.Del("end_user")
		if user := session.EndUserID(who.Workspace.ID, strings.TrimSpace(given)); user != "" {
			query.Set("end_user", user)
		}
		return layout.Redirect(c, c.Request().URL.Path+"?"+query.Encode())
	}
}
