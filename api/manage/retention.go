package manage

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

type retentionJSON struct {
	Days int `json:"days"` // 0 means forever
}

func (h dataHandler) getRetention(c echo.Context, who caller) error {
	retention, err := h.data.Retention(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, retentionJSON{Days: retention.Days})
}

// newRetention is the body of a request to set the retention. An omitted value is not taken for 0.
type newRetention struct {
	Days *int `json:"days"`
}

func (h dataHandler) putRetention(c echo.Context, who caller) error {
	asked, err := readJSON[newRetention](c)
	if err != nil {
		return err
	}
	if asked.Days == nil {
		return tenants.Invalid{Field: "days", Message: "is missing; 0 keeps sessions for ever"}
	}
	retention := tenants.Retention{Days: *asked.Days}
	if err := h.data.SetRetention(c.Request().Context(), who.workspace, retention); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, retentionJSON{Days: retention.Days})
}
