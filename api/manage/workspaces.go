package manage

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// People keeps workspaces and who belongs to them.
type People interface {
	// CreateWorkspace has the login work in the new workspace.
	CreateWorkspace(ctx context.Context, login tenants.Login, name string) (tenants.Workspace, error)

	// Enter returns tenants.ErrNotFound for a workspace that the login's user does
	// not belong to.
	Enter(ctx context.Context, login tenants.Login, workspace tenants.WorkspaceID) error

	RenameWorkspace(ctx context.Context, workspace tenants.WorkspaceID, name string) error

	// Leave returns tenants.ErrLastOwner where no one else owns the workspace.
	Leave(ctx context.Context, who tenants.Principal, revokeKeys bool) error

	Members(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Member, error)

	// ChangeRole and RemoveMember return tenants.ErrNotFound, tenants.ErrDenied and
	// tenants.ErrLastOwner.
	ChangeRole(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, role tenants.Role) error
	RemoveMember(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, revokeKeys bool) error
}

// membershipJSON is a workspace that someone belongs to.
type membershipJSON struct {
	ID      uuid.UUID    `json:"id"`
	Name    string       `json:"name,omitempty"`
	Role    tenants.Role `json:"role,omitempty"` // none for an API key
	Current bool         `json:"current"`        // the login works there
}

func membershipsOf(who tenants.Principal) []membershipJSON {
	list := make([]membershipJSON, len(who.Memberships))
	for i, membership := range who.Memberships {
		list[i] = membershipJSON{
			ID: membership.Workspace.ID, Name: membership.Workspace.Name, Role: membership.Role,
			Current: membership.Workspace.ID == who.Workspace.ID,
		}
	}
	return list
}

func (s *server) listWorkspaces(c echo.Context, who caller) error {
	if who.isKey() {
		if !who.may(tenants.Enter) {
			return who.denied()
		}
		return answerPage(c, []membershipJSON{{ID: who.workspace, Current: true}}, "")
	}
	return answerPage(c, membershipsOf(who.principal), "")
}

// workspaceName is what a request says of a workspace.
type workspaceName struct {
	Name string `json:"name"`
}

func (s *server) createWorkspace(c echo.Context, who caller) error {
	asked, err := readJSON[workspaceName](c)
	if err != nil {
		return err
	}
	created, err := s.People.CreateWorkspace(c.Request().Context(), who.principal.Login, asked.Name)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, membershipJSON{ID: created.ID, Name: created.Name, Role: tenants.Owner, Current: true})
}

func (s *server) enterWorkspace(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	if err := s.People.Enter(c.Request().Context(), who.principal.Login, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// renameWorkspace renames the workspace that the caller works in, and no other.
func (s *server) renameWorkspace(c echo.Context, who caller) error {
	if err := who.in(c); err != nil {
		return err
	}
	asked, err := readJSON[workspaceName](c)
	if err != nil {
		return err
	}
	if err := s.People.RenameWorkspace(c.Request().Context(), who.workspace, asked.Name); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// leaveWorkspace leaves the workspace that the caller works in, and no other.
func (s *server) leaveWorkspace(c echo.Context, who caller) error {
	if err := who.in(c); err != nil {
		return err
	}
	revoke, err := revokesKeys(c)
	if err != nil {
		return err
	}
	if err := s.People.Leave(c.Request().Context(), who.principal, revoke); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// in returns tenants.ErrNotFound unless the caller works in the workspace of the path.
func (c caller) in(request echo.Context) error {
	id, err := pathID(request)
	if err == nil && id != c.workspace {
		err = tenants.ErrNotFound
	}
	return err
}

// revokesKeys returns what the query says is to become of a member's API keys: they
// are revoked, unless they are to be kept.
func revokesKeys(c echo.Context) (bool, error) {
	if err := allowQuery(c, "keys"); err != nil {
		return false, err
	}
	switch c.QueryParam("keys") {
	case "", "revoke":
		return true, nil
	case "keep":
		return false, nil
	}
	return false, tenants.Invalid{Field: "keys", Message: "must be revoke or keep"}
}
