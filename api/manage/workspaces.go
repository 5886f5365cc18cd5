package manage

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// workspaceHandler serves the workspaces of a person, and deletes them.
type workspaceHandler struct {
	workspaces tenants.Workspaces
	deletion   tenants.Deletion
}

func (h workspaceHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/workspaces", a.known(h.listWorkspaces))
	group.POST("/workspaces", a.asPerson(h.createWorkspace))
	group.POST("/workspaces/:id/enter", a.asPerson(h.enterWorkspace))
	group.PATCH("/workspaces/:id", a.as(tenants.ManageSettings, h.renameWorkspace))
	group.POST("/workspaces/:id/leave", a.asPerson(h.leaveWorkspace))
	group.DELETE("/workspace", a.as(tenants.DeleteWorkspace, h.deleteWorkspace))
}

// membershipJSON is a workspace of a person.
type membershipJSON struct {
	ID      tenants.WorkspaceID `json:"id"`
	Name    string              `json:"name,omitempty"`
	Role    tenants.Role        `json:"role,omitempty"` // "" for an API key
	Current bool                `json:"current"`        // workspace of the login
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

func (h workspaceHandler) listWorkspaces(c echo.Context, who caller) error {
	if who.isKey() {
		if !who.may(tenants.Enter) {
			return who.denied()
		}
		return answerPage(c, []membershipJSON{{ID: who.workspace, Current: true}}, "")
	}
	return answerPage(c, membershipsOf(who.principal), "")
}

// workspaceName is the body of a request that names a workspace.
type workspaceName struct {
	Name string `json:"name"`
}

func (h workspaceHandler) createWorkspace(c echo.Context, who caller) error {
	asked, err := readJSON[workspaceName](c)
	if err != nil {
		return err
	}
	created, err := h.workspaces.CreateWorkspace(c.Request().Context(), who.principal.Login, asked.Name)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, membershipJSON{ID: created.ID, Name: created.Name, Role: tenants.Owner, Current: true})
}

func (h workspaceHandler) enterWorkspace(c echo.Context, who caller) error {
	id, err := pathWorkspace(c)
	if err != nil {
		return err
	}
	return done(c, h.workspaces.Enter(c.Request().Context(), who.principal.Login, id))
}

// renameWorkspace renames the caller's current workspace only.
func (h workspaceHandler) renameWorkspace(c echo.Context, who caller) error {
	if err := who.in(c); err != nil {
		return err
	}
	asked, err := readJSON[workspaceName](c)
	if err != nil {
		return err
	}
	return done(c, h.workspaces.RenameWorkspace(c.Request().Context(), who.workspace, asked.Name))
}

// leaveWorkspace leaves the caller's current workspace only.
func (h workspaceHandler) leaveWorkspace(c echo.Context, who caller) error {
	if err := who.in(c); err != nil {
		return err
	}
	revoke, err := revokesKeys(c)
	if err != nil {
		return err
	}
	return done(c, h.workspaces.Leave(c.Request().Context(), who.principal, revoke))
}

// in returns tenants.ErrNotFound unless the workspace in the path is the caller's current one.
func (c caller) in(request echo.Context) error {
	id, err := pathWorkspace(request)
	if err == nil && id != c.workspace {
		err = tenants.ErrNotFound
	}
	return err
}

// revokesKeys reports whether the query revokes a member's API keys, which is the default.
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
