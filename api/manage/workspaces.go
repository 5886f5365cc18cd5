package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"
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
	group.POST("/workspaces", a.asPerson(withBody(h.createWorkspace)))
	group.POST("/workspaces/:id/enter", a.asPerson(h.enterWorkspace))
	group.PATCH("/workspaces/:id", a.as(tenants.ManageSettings, h.renameWorkspace))
	group.POST("/workspaces/:id/leave", a.asPerson(h.leaveWorkspace))
	group.DELETE("/workspace", a.as(tenants.DeleteWorkspace, withBody(h.deleteWorkspace)))
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

func (h workspaceHandler) createWorkspace(c echo.Context, who caller, asked workspaceName) error {
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

// deletion is the body of a request to delete a workspace. It repeats the name and the password because the
// deletion can't be undone.
type deletion struct {
	Name     string `json:"name"`     // of the workspace
	Password string `json:"password"` // of the person who asks
}

// deleteWorkspace deletes the workspace of the login. The workspace is unreachable once the request is
// answered; its data is removed in the background.
func (h workspaceHandler) deleteWorkspace(c echo.Context, who caller, asked deletion) error {
	err := h.deletion.DeleteConfirmed(c.Request().Context(), who.principal, asked.Name, asked.Password, c.RealIP())
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusAccepted)
}

// operatedJSON is an operator's view of a workspace.
type operatedJSON struct {
	ID           tenants.WorkspaceID `json:"id"`
	Name         string              `json:"name"`
	CreatedAt    time.Time           `json:"created_at"`
	Owner        string              `json:"owner"`
	Members      int64               `json:"members"`
	Exchanges    int64               `json:"exchanges"` // of 30 days, like the next two
	Failures     int64               `json:"failures"`
	Tokens       int64               `json:"tokens"`
	LastExchange *time.Time          `json:"last_exchange"` // null if absent
	ArchiveBytes int64               `json:"archive_bytes"`
	SuspendedAt  *time.Time          `json:"suspended_at"` // null if active
	Reason       string              `json:"reason,omitempty"`
}

func operatedOf(workspace tenants.OperatedWorkspace) operatedJSON {
	operated := operatedJSON{
		ID: workspace.ID, Name: workspace.Name, CreatedAt: workspace.CreatedAt, Owner: workspace.Owner, Members: workspace.Members,
		Exchanges: workspace.Exchanges, Failures: workspace.Failures, Tokens: workspace.Tokens,
		LastExchange: workspace.LastExchange, ArchiveBytes: workspace.ArchiveBytes,
	}
	if workspace.Suspension != nil {
		operated.SuspendedAt, operated.Reason = &workspace.Suspension.Since, workspace.Suspension.Reason
	}
	return operated
}

// operatorHandler serves the operators of the installation.
type operatorHandler struct {
	operators tenants.Operators
}

func (h operatorHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/operator/workspaces", a.operator(withQuery(h.listOperated, "q", "limit", "cursor")))
	group.POST("/operator/workspaces/:id/suspend", a.operator(h.setSuspended(true)))
	group.POST("/operator/workspaces/:id/resume", a.operator(h.setSuspended(false)))
}

// operator wraps a handler for logins of the installation's operators. Others, and API keys, get a 404.
func (a *authorizer) operator(handle func(c echo.Context, who caller) error) echo.HandlerFunc {
	return a.known(func(c echo.Context, who caller) error {
		if who.isKey() || !who.principal.User.Operator {
			return tenants.ErrNotFound
		}
		return handle(c, who)
	})
}

// listOperated lists the workspaces of the installation. The cursor is the id of the
// last workspace of the page before.
func (h operatorHandler) listOperated(c echo.Context, who caller) error {
	limit, err := queryLimit(c)
	if err != nil {
		return err
	}
	ctx, operator := c.Request().Context(), who.principal.User.ID
	query := tenants.OperatedQuery{Search: c.QueryParam("q"), Limit: limit + 1}
	if cursor := c.QueryParam("cursor"); cursor != "" {
		id, err := tenants.ParseWorkspaceID(cursor)
		if err != nil {
			return wrongCursor()
		}
		last, err := h.operators.OperatedWorkspace(ctx, operator, id)
		if err != nil {
			return err
		}
		query.BeforeAt, query.BeforeID = last.CreatedAt, last.ID
	}
	found, err := h.operators.OperatedWorkspaces(ctx, operator, query)
	if err != nil {
		return err
	}
	found, next := firstOf(found, limit, func(w *tenants.OperatedWorkspace) uuid.UUID { return uuid.UUID(w.ID) })
	return answerPage(c, each(found, operatedOf), next)
}

// setSuspended returns a handler that suspends the workspace in the path, or resumes it.
func (h operatorHandler) setSuspended(suspend bool) func(c echo.Context, who caller) error {
	return func(c echo.Context, who caller) error {
		id, err := pathWorkspace(c)
		if err != nil {
			return err
		}
		asked, err := readJSON[struct {
			Reason string `json:"reason"`
		}](c)
		if err != nil {
			return err
		}
		reason, err := tenants.CheckReason(asked.Reason)
		if err != nil {
			return err
		}
		ctx, operator := c.Request().Context(), who.principal.User.ID
		do := h.operators.ResumeWorkspace
		if suspend {
			do = h.operators.SuspendWorkspace
		}
		if err := do(ctx, operator, id, reason); err != nil {
			return err
		}
		now, err := h.operators.OperatedWorkspace(ctx, operator, id)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, operatedOf(now))
	}
}
