package web

import (
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// policy lets a page load only from this server and forbids inline scripts and styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm limits the body of a form, in bytes.
const maxForm = 1 << 20

// headers sets the security headers of every page.
func (s *Server) headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set(echo.HeaderContentSecurityPolicy, policy)
		header.Set(echo.HeaderXContentTypeOptions, "nosniff")
		header.Set(echo.HeaderReferrerPolicy, "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		if strings.HasPrefix(s.config.PublicURL, "https://") {
			header.Set(echo.HeaderStrictTransportSecurity, "max-age=31536000")
		}
		return next(c)
	}
}

// labeled marks pages of a demo, and pages of an installation that keeps mails instead of sending them.
func (s *Server) labeled(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.config.Demo != "" {
			layout.WithDemo(c, s.config.Demo)
		}
		if s.deps.Installation.Mails != nil {
			layout.WithMailsKept(c)
		}
		return next(c)
	}
}

// sameOrigin refuses requests that another site makes a browser send.
func (s *Server) sameOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.origins.Check(c.Request()); err != nil {
			return errCrossOrigin
		}
		return next(c)
	}
}

// limit refuses bodies larger than any of our forms and parses the rest, with or without files.
func (s *Server) limit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		request.Body = http.MaxBytesReader(c.Response(), request.Body, maxForm)
		if request.Method != http.MethodPost {
			return next(c)
		}
		err := request.ParseForm()
		if err == nil {
			if err = request.ParseMultipartForm(maxForm); errors.Is(err, http.ErrNotMultipart) {
				err = nil
			}
		}
		if err != nil {
			if _, is := errors.AsType[*http.MaxBytesError](err); is {
				return echo.NewHTTPError(http.StatusRequestEntityTooLarge).SetInternal(err)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return echo.NewHTTPError(http.StatusRequestTimeout).SetInternal(err)
			}
			return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
		}
		return next(c)
	}
}

// home redirects to the overview. Without a login, it redirects to sign-up while there are no accounts yet,
// and otherwise offers both sign-up and login.
func (s *Server) home(c echo.Context) error {
	_, err := s.principal(c)
	if err == nil {
		return layout.Redirect(c, paths.Overview)
	}
	if !errors.Is(err, tenants.ErrLoginEnded) {
		return err
	}
	isNew, err := s.deps.People.Identity.IsNew(c.Request().Context())
	if err != nil {
		return err
	}
	if isNew {
		return layout.Redirect(c, paths.SignUp)
	}
	return layout.Plain(c, http.StatusOK, "Never out of context", welcome(s.config.PublicURL, s.config.PublicDemo))
}

// setTheme stores the reader's color theme in a cookie and redirects back.
func (s *Server) setTheme(c echo.Context) error {
	theme := c.FormValue("theme")
	if theme != "light" && theme != "dark" {
		return echo.NewHTTPError(http.StatusBadRequest)
	}
	//nolint:gosec // not HttpOnly: theme.js sets it too; it tells nothing
	c.SetCookie(&http.Cookie{
		Name: layout.ThemeCookie, Value: theme, Path: "/", MaxAge: 365 * 24 * 3600,
		Secure: strings.HasPrefix(s.config.PublicURL, "https://"), SameSite: http.SameSiteLaxMode,
	})
	return layout.Redirect(c, referer(c.Request()))
}

// referer returns our page that sent a form.
func referer(request *http.Request) string {
	_, rest, ok := strings.Cut(request.Referer(), "//"+request.Host)
	if !ok {
		return paths.Home
	}
	return paths.Local(rest)
}
