package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
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

// mostElsewhere limits the workspaces that are searched for a page.
const mostElsewhere = 50

// shared wraps the handler of a page whose link people share. If the current workspace does not have the
// item, another workspace of the person may, so the page offers to switch. holds returns a not-found error
// for an item that the workspace does not have.
func (s *Server) shared(
	permission tenants.Permission, noun string, holds func(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error,
	handle func(c echo.Context, who tenants.Principal) error,
) echo.HandlerFunc {
	return s.as(permission, func(c echo.Context, who tenants.Principal) error {
		err := handle(c, who)
		if !isNotFound(err) || c.Response().Committed {
			return err
		}
		id, wrong := uuid.Parse(c.Param("id"))
		if wrong != nil {
			return err
		}
		for _, other := range who.Memberships[:min(len(who.Memberships), mostElsewhere)] {
			if other.Workspace.ID == who.Workspace.ID || !other.Role.May(permission) || other.Workspace.Suspension != nil {
				continue
			}
			ctx, err := s.seeing(c.Request().Context(), who.User.ID, other.Workspace.ID, other.Role)
			if err != nil {
				return err
			}
			switch missing := holds(ctx, other.Workspace.ID, id); {
			case missing == nil:
				content := elsewherePage(noun, who.Workspace, other.Workspace, c.Request().URL.RequestURI())
				return layout.Page(c, http.StatusNotFound, layout.Frame{Title: "In another workspace", Who: who}, content)
			case !isNotFound(missing):
				return missing
			}
		}
		return err
	})
}

// isNotFound reports whether an error means that the workspace does not have something.
func isNotFound(err error) bool {
	return errors.Is(err, tenants.ErrNotFound) || errors.Is(err, session.ErrNotFound)
}

// holdsSession returns session.ErrNotFound for a session that a workspace does not have.
func (s *Server) holdsSession(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	_, err := s.deps.Conversations.Sessions.Session(ctx, workspace, id)
	return err
}

// holdsRequest returns tenants.ErrNotFound for a request that a workspace does not have.
func (s *Server) holdsRequest(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	_, err := s.deps.Traffic.Exchanges.Exchange(ctx, workspace, id)
	return err
}
