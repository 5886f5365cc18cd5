package manage

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// Retentions keeps for how long each workspace keeps its sessions.
type Retentions interface {
	Retention(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Retention, error)

	// SetRetention returns tenants.Invalid for what cannot be set.
	SetRetention(ctx context.Context, workspace tenants.WorkspaceID, retention tenants.Retention) error
}

type retentionJSON struct {
	Days int `json:"days"` // 0: for ever
}

func (s *server) getRetention(c echo.Context, who caller) error {
	retention, err := s.Retentions.Retention(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, retentionJSON{Days: retention.Days})
}

// newRetention is what a request says; what it leaves out is not taken for 0.
type newRetention struct {
	Days *int `json:"days"`
}

func (s *server) putRetention(c echo.Context, who caller) error {
	asked, err := readJSON[newRetention](c)
	if err != nil {
		return err
	}
	if asked.Days == nil {
		return tenants.Invalid{Field: "days", Message: "is missing; 0 keeps sessions for ever"}
	}
	retention := tenants.Retention{Days: *asked.Days}
	if err := s.Retentions.SetRetention(c.Request().Context(), who.workspace, retention); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, retentionJSON{Days: retention.Days})
}
