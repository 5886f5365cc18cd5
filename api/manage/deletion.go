package manage

import (
	"net/http"

	"github.com/labstack/echo/v4"
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
	err = h.deletion.DeleteConfirmed(c.Request().Context(), who.principal, asked.Name, asked.Password, c.RealIP())
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusAccepted)
}
