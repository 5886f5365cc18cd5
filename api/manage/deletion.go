package manage

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// deletion is what a request says to delete a workspace: what cannot be undone is
// asked twice.
type deletion struct {
	Name     string `json:"name"`     // of the workspace
	Password string `json:"password"` // of the person who asks
}

// deleteWorkspace deletes the workspace of the login. Nobody reaches it any more once
// it answers; what is stored of it is removed in the background.
func (h workspaceHandler) deleteWorkspace(c echo.Context, who caller) error {
	asked, err := readJSON[deletion](c)
	if err != nil {
		return err
	}
	if asked.Name != who.principal.Workspace.Name {
		return tenants.Invalid{Field: "name", Message: "must be the name of the workspace, letter for letter"}
	}
	ctx := c.Request().Context()
	err = h.identity.Confirm(ctx, who.principal.User, asked.Password, c.RealIP())
	if errors.Is(err, tenants.ErrWrongLogin) {
		err = tenants.Invalid{Field: "password", Message: "is not the password of your account"}
	}
	if err != nil {
		return err
	}
	if err := h.deletion.DeleteWorkspace(ctx, who.workspace); err != nil {
		return err
	}
	return c.NoContent(http.StatusAccepted)
}
