package manage

import (
	"strings"

	"github.com/labstack/echo/v4"
)

// Headers forbids caching and content sniffing for every answer below /api/v1, including errors of the
// router. It is for echo.Pre.
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
