package manage

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// deletion is the body of a request to delete a workspace. It repeats the name and the password because the
// deletion can't be undone.
type deletion struct {
	Name     string `json:"name"`     // of the workspace
	Password string `json:"password"` // of the person who asks
}

// deleteWorkspace deletes the workspace of the login. The workspace is unreachable once the request is
// answered; its data is removed in the background.
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
