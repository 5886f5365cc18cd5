package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

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
	group.GET("/operator/workspaces", a.operator(h.listOperated))
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
	if err := allowQuery(c, "q", "limit", "cursor"); err != nil {
		return err
	}
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
