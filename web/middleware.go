package web

import (
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// policy lets a page load from this server only and run nothing that stands in it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm bounds the body of a form, in bytes.
const maxForm = 1 << 20

// headers sets what every page says to browsers.
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

// labeled has pages say that all data was made up, where it was, and where mails are read
// that are not sent.
func (s *Server) labeled(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.config.Demo != "" {
			layout.WithDemo(c, s.config.Demo)
		}
		if s.deps.Mails != nil {
			layout.WithMailsKept(c)
		}
		return next(c)
	}
}

// sameOrigin refuses what another site makes a browser send.
func (s *Server) sameOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.origins.Check(c.Request()); err != nil {
			return errCrossOrigin
		}
		return next(c)
	}
}

// limit refuses bodies that none of our forms has, and reads those that one has, with files
// and without.
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

// as wraps a handler that works for someone who is logged in and whose role grants
// the permission; who belongs to no workspace is asked to create one.
func (s *Server) as(permission tenants.Permission, handle func(c echo.Context, who tenants.Principal) error) echo.HandlerFunc {
	return s.person(func(c echo.Context, who tenants.Principal) error {
		if who.Workspace.ID == uuid.Nil {
			return layout.Redirect(c, paths.NewWorkspace)
		}
		if !who.Role.May(permission) {
			return tenants.ErrDenied
		}
		if suspended := who.Workspace.Suspension; suspended != nil && permission != tenants.Enter {
			return tenants.Suspended{Reason: suspended.Reason}
		}
		s.showPlan(c, who)
		return handle(c, who)
	})
}

// operator wraps a handler that works for who runs the installation; for others there
// is no such page.
func (s *Server) operator(handle func(c echo.Context, who tenants.Principal) error) echo.HandlerFunc {
	return s.person(func(c echo.Context, who tenants.Principal) error {
		if !who.User.Operator {
			return tenants.ErrNotFound
		}
		return handle(c, who)
	})
}

// person wraps a handler that works for someone who is logged in, in a workspace or
// in none; who is not logged in is sent to the login page and back, and to sign up
// where nobody has yet.
func (s *Server) person(handle func(c echo.Context, who tenants.Principal) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := s.principal(c)
		if errors.Is(err, tenants.ErrLoginEnded) {
			s.cookies.Clear(c.Response())
			isNew, err := s.deps.Identity.IsNew(c.Request().Context())
			if err != nil {
				return err
			}
			if isNew {
				return layout.Redirect(c, paths.SignUp)
			}
			next := ""
			if c.Request().Method == http.MethodGet && c.Request().URL.Path != paths.Overview {
				next = c.Request().URL.RequestURI()
			}
			return layout.Redirect(c, paths.With(paths.LogIn, "next", next))
		}
		if err != nil {
			return err
		}
		request := c.Request()
		c.SetRequest(request.WithContext(tenants.WithActor(request.Context(), who.Actor(c.RealIP()))))
		s.knowZone(c, who)
		return handle(c, who)
	}
}

// maybe wraps a handler for everybody: who is the zero Principal for someone who is
// not logged in.
func (s *Server) maybe(handle func(c echo.Context, who tenants.Principal) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := s.principal(c)
		if err != nil && !errors.Is(err, tenants.ErrLoginEnded) {
			return err
		}
		request := c.Request()
		c.SetRequest(request.WithContext(tenants.WithActor(request.Context(), who.Actor(c.RealIP()))))
		return handle(c, who)
	}
}

// showPlan has the page show the plan of the workspace, where there is billing. A page
// does not fail for it.
func (s *Server) showPlan(c echo.Context, who tenants.Principal) {
	if !s.deps.Billing.IsOn() {
		return
	}
	overview, err := s.deps.Billing.Overview(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		s.config.Log.WarnContext(c.Request().Context(), "show plan", "error", err)
		return
	}
	layout.WithPlan(c, overview)
}

// knowZone has the page be in the workspace's time zone while the reader's own is not
// known. A page does not fail for it.
func (s *Server) knowZone(c echo.Context, who tenants.Principal) {
	if who.Workspace.ID == uuid.Nil || layout.KnowsZone(c.Request()) {
		return
	}
	settings, err := s.deps.Data.DataSettings(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		s.config.Log.WarnContext(c.Request().Context(), "time zone of the workspace", "error", err)
		return
	}
	layout.WithZone(c, settings.TimeZone)
}

// guest wraps a handler for people who are not logged in; others go on to the
// overview.
func (s *Server) guest(handle echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := s.principal(c); err == nil {
			return layout.Redirect(c, paths.Overview)
		}
		return handle(c)
	}
}

// principal returns who sent a request, or tenants.ErrLoginEnded.
func (s *Server) principal(c echo.Context) (tenants.Principal, error) {
	token := s.cookies.Token(c.Request())
	if token == "" {
		return tenants.Principal{}, tenants.ErrLoginEnded
	}
	return s.deps.Identity.Authenticate(c.Request().Context(), token)
}

// home leads to the overview. Who is not logged in is led to sign up where nobody
// has yet, and is asked elsewhere whether to sign up or to log in.
func (s *Server) home(c echo.Context) error {
	_, err := s.principal(c)
	if err == nil {
		return layout.Redirect(c, paths.Overview)
	}
	if !errors.Is(err, tenants.ErrLoginEnded) {
		return err
	}
	isNew, err := s.deps.Identity.IsNew(c.Request().Context())
	if err != nil {
		return err
	}
	if isNew {
		return layout.Redirect(c, paths.SignUp)
	}
	return layout.Plain(c, http.StatusOK, "Welcome", welcome())
}

// setTheme keeps the reader's color theme in a cookie and leads back.
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

// referer returns our page that a form was sent from.
func referer(request *http.Request) string {
	_, rest, ok := strings.Cut(request.Referer(), "//"+request.Host)
	if !ok {
		return paths.Home
	}
	return paths.Local(rest)
}
