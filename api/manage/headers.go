package manage

import (
	"strings"

	"github.com/labstack/echo/v4"
)

// Headers has every answer below /api/v1, errors of the router included, say that nothing
// keeps it and that browsers take it for what it says it is. It is made for echo.Pre.
func Headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if path := c.Request().URL.Path; path == "/api/v1" || strings.HasPrefix(path, "/api/v1/") {
			header := c.Response().Header()
			header.Set(echo.HeaderCacheControl, "no-store")
			header.Set(echo.HeaderXContentTypeOptions, "nosniff")
		}
		return next(c)
	}
}
