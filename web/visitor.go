package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"golang.org/x/time/rate"

	"palimpsest/static"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// The pages that one address may open in a public demo: so many at once, and so many in a second.
const (
	visitorBurst = 60
	visitorRate  = 3
)

// visits lists the routes of a public demo. All others are closed: everything that changes something, the API
// and the proxy, downloads, and pages about keys, people and accounts.
func visits() map[string]bool {
	open := map[string]bool{
		http.MethodGet + " " + static.Prefix + "*": true, http.MethodHead + " " + static.Prefix + "*": true,

		// Both change nothing: a cookie with colors, and figures for unsaved settings.
		http.MethodPost + " " + paths.Theme: true, http.MethodPost + " " + paths.PipelinePreview: true,
	}
	for _, path := range []string{
		paths.Home, paths.Overview, paths.Spend, paths.SpendStatement, paths.More, paths.Jump, paths.Docs, paths.Docs + "/:page",
		paths.Sessions, paths.Sessions + "/:id", paths.Sessions + "/:id/find", paths.Sessions + "/:id/count", paths.CompareSessionsWith,
		paths.Requests, paths.Requests + "/:id", paths.CompareWith,
		paths.Pipeline, paths.PipelineHistory, paths.PipelineHistory + "/:version", paths.PipelineYAML, paths.Patterns,
	} {
		open[http.MethodGet+" "+path] = true
	}
	return open
}

// onlyLook refuses everything in a public demo except looking at its pages, in one place for all routes of the
// program. It limits how many pages an address may open.
func (s *Server) onlyLook() echo.MiddlewareFunc {
	open := visits()
	pace := middleware.RateLimiterWithConfig(middleware.RateLimiterConfig{
		Skipper: func(c echo.Context) bool { return strings.HasPrefix(c.Path(), static.Prefix) },
		Store: middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{
			Rate: rate.Limit(visitorRate), Burst: visitorBurst, ExpiresIn: time.Minute,
		}),
		IdentifierExtractor: func(c echo.Context) (string, error) { return c.RealIP(), nil },
		DenyHandler: func(c echo.Context, _ string, _ error) error {
			c.Response().Header().Set(echo.HeaderRetryAfter, "20")
			return s.refuseVisitor(c, problem{http.StatusTooManyRequests, "Too many pages at once", "Wait 20 seconds, and open the page again."})
		},
	})
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		look := pace(next)
		return func(c echo.Context) error {
			if c.Path() == "" || open[c.Request().Method+" "+c.Path()] {
				return look(c)
			}
			return s.refuseVisitor(c, problem{
				http.StatusForbidden, "This demo can only be looked at", "No change was made. Downloads, the API, keys and accounts are closed here. In your own installation they work.",
			})
		}
	}
}

// refuseVisitor answers with a problem as a page, or as JSON for programs.
func (s *Server) refuseVisitor(c echo.Context, with problem) error {
	if !strings.Contains(c.Request().Header.Get(echo.HeaderAccept), echo.MIMETextHTML) {
		return c.JSON(with.status, map[string]map[string]string{"error": {"type": "read_only_demo", "message": with.title + ". " + with.text}})
	}
	return s.headers(func(c echo.Context) error {
		layout.WithDemo(c, s.config.Demo)
		return layout.Plain(c, with.status, with.title, refusedVisit(with))
	})(c)
}
