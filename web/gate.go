package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/billing"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// gate authenticates the sender of a request and wraps handlers with the checks that they require.
type gate struct {
	identity tenants.Identity
	billing  *billing.Service
	data     tenants.Data
	cookies  tenants.Cookies
	log      *slog.Logger

	visitor func(context.Context) (tenants.Principal, error) // nil unless this is a public demo
}

// as wraps a handler that needs a login and a role with the permission. Without a workspace, the person is
// asked to create one.
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
		ctx, err := g.seeing(c.Request().Context(), who.User.ID, who.Workspace.ID, who.Role)
		if err != nil {
			return err
		}
		c.SetRequest(c.Request().WithContext(ctx))
		g.showPlan(c, who)
		return handle(c, who)
	})
}

// seeing returns a context in which the stores answer with what a member may see of a workspace.
func (g *gate) seeing(ctx context.Context, person uuid.UUID, workspace tenants.WorkspaceID, role tenants.Role) (context.Context, error) {
	var reader tenants.Reader
	if !role.May(tenants.ReadSpend) { // who sees everything anyway
		var err error
		if reader, err = g.data.Reader(ctx, workspace, person); err != nil {
			return nil, err
		}
	}
	return tenants.WithVisible(ctx, reader.Visible(role.May)), nil
}

// operator wraps a handler for operators of the installation. Other people get a not-found page.
func (g *gate) operator(handle func(c echo.Context, who tenants.Principal) error) echo.HandlerFunc {
	return g.person(func(c echo.Context, who tenants.Principal) error {
		if !who.User.Operator {
			return tenants.ErrNotFound
		}
		return handle(c, who)
	})
}

// person wraps a handler that needs a login, with or without a workspace. Without a login, it redirects to
// the login page and back, or to sign-up while there are no accounts yet.
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

// maybe wraps a handler for everyone; who is the zero Principal without a login.
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

// showPlan makes the page show the workspace's plan, if billing is on. Its errors do not fail the page.
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

// knowZone sets the page's time zone to the workspace's for readers whose own is unknown. Its errors do not
// fail the page.
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

// guest wraps a handler for people without a login; others are redirected to the overview.
func (g *gate) guest(handle echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := g.principal(c); err == nil {
			return layout.Redirect(c, paths.Overview)
		}
		return handle(c)
	}
}

// principal returns the sender of a request, or tenants.ErrLoginEnded.
func (g *gate) principal(c echo.Context) (tenants.Principal, error) {
	if g.visitor != nil {
		return g.visitor(c.Request().Context())
	}
	token := g.cookies.Token(c.Request())
	if token == "" {
		return tenants.Principal{}, tenants.ErrLoginEnded
	}
	return g.identity.Authenticate(c.Request().Context(), token)
}
