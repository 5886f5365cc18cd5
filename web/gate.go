package web

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/billing"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// gate lets people in: it finds out who sent a request, and wraps handlers in what they ask
// of that person.
type gate struct {
	identity tenants.Identity
	billing  *billing.Service
	data     tenants.Data
	cookies  tenants.Cookies
	log      *slog.Logger
}

// as wraps a handler that works for someone who is logged in and whose role grants
// the permission; who belongs to no workspace is asked to create one.
func (g *gate) as(permission tenants.Permission, handle func(c echo.Context, who tenants.Principal) error) echo.HandlerFunc {
	return g.person(func(c echo.Context, who tenants.Principal) error {
		if who.Workspace.ID.IsZero() {
			return layout.Redirect(c, paths.NewWorkspace)
		}
		if !who.Role.May(permission) {
			return tenants.ErrDenied
		}
		if suspended := who.Workspace.Suspension; suspended != nil && permission != tenants.Enter {
			return tenants.Suspended{Reason: suspended.Reason}
		}
		g.showPlan(c, who)
		return handle(c, who)
	})
}

// operator wraps a handler that works for who runs the installation; for others there
// is no such page.
func (g *gate) operator(handle func(c echo.Context, who tenants.Principal) error) echo.HandlerFunc {
	return g.person(func(c echo.Context, who tenants.Principal) error {
		if !who.User.Operator {
			return tenants.ErrNotFound
		}
		return handle(c, who)
	})
}

// person wraps a handler that works for someone who is logged in, in a workspace or
// in none; who is not logged in is sent to the login page and back, and to sign up
// where nobody has yet.
func (g *gate) person(handle func(c echo.Context, who tenants.Principal) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := g.principal(c)
		if errors.Is(err, tenants.ErrLoginEnded) {
			g.cookies.Clear(c.Response())
			isNew, err := g.identity.IsNew(c.Request().Context())
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
		g.knowZone(c, who)
		return handle(c, who)
	}
}

// maybe wraps a handler for everybody: who is the zero Principal for someone who is
// not logged in.
func (g *gate) maybe(handle func(c echo.Context, who tenants.Principal) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := g.principal(c)
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
func (g *gate) showPlan(c echo.Context, who tenants.Principal) {
	if !g.billing.IsOn() {
		return
	}
	overview, err := g.billing.Overview(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		g.log.WarnContext(c.Request().Context(), "show plan", "error", err)
		return
	}
	layout.WithPlan(c, overview)
}

// knowZone has the page be in the workspace's time zone while the reader's own is not
// known. A page does not fail for it.
func (g *gate) knowZone(c echo.Context, who tenants.Principal) {
	if who.Workspace.ID.IsZero() || layout.KnowsZone(c.Request()) {
		return
	}
	settings, err := g.data.DataSettings(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		g.log.WarnContext(c.Request().Context(), "time zone of the workspace", "error", err)
		return
	}
	layout.WithZone(c, settings.TimeZone)
}

// guest wraps a handler for people who are not logged in; others go on to the
// overview.
func (g *gate) guest(handle echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := g.principal(c); err == nil {
			return layout.Redirect(c, paths.Overview)
		}
		return handle(c)
	}
}

// principal returns who sent a request, or tenants.ErrLoginEnded.
func (g *gate) principal(c echo.Context) (tenants.Principal, error) {
	token := g.cookies.Token(c.Request())
	if token == "" {
		return tenants.Principal{}, tenants.ErrLoginEnded
	}
	return g.identity.Authenticate(c.Request().Context(), token)
}
