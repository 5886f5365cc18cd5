package manage

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// windowHandler serves a workspace's context windows for models.
type windowHandler struct {
	windows tenants.ModelWindows
}

func (h windowHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/models/windows", a.as(tenants.ReadConfig, h.listModelWindows))
	group.PUT("/models/windows/:model", a.as(tenants.ManagePipeline, h.putModelWindow))
	group.DELETE("/models/windows/:model", a.as(tenants.ManagePipeline, h.deleteModelWindow))
}

type modelWindowJSON struct {
	Model  string               `json:"model"`
	Tokens int                  `json:"window_tokens"`
	Source tenants.WindowSource `json:"source"`
	SetBy  *uuid.UUID           `json:"set_by,omitempty"`
	SetAt  time.Time            `json:"set_at"`
}

func modelWindowOf(window tenants.ModelWindow) modelWindowJSON {
	return modelWindowJSON{Model: window.Model, Tokens: window.Tokens, Source: window.Source, SetBy: nullable(window.SetBy), SetAt: window.SetAt}
}

func (h windowHandler) listModelWindows(c echo.Context, who caller) error {
	windows, err := h.windows.ModelWindows(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return answerPage(c, each(windows, modelWindowOf), "")
}

// newModelWindow is the body of a request to set a model's window.
type newModelWindow struct {
	Tokens int `json:"window_tokens"`
}

func (h windowHandler) putModelWindow(c echo.Context, who caller) error {
	model, err := pathModel(c)
	if err != nil {
		return err
	}
	asked, err := readJSON[newModelWindow](c)
	if err != nil {
		return err
	}
	if asked.Tokens < tenants.MinModelWindow || asked.Tokens > tenants.MaxModelWindow {
		return tenants.Invalid{Field: "window_tokens", Message: fmt.Sprintf("must be a whole number from %d to %d", tenants.MinModelWindow, tenants.MaxModelWindow)}
	}
	window, err := h.windows.SetModelWindow(c.Request().Context(), who.workspace, model, asked.Tokens, who.author())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, modelWindowOf(window))
}

func (h windowHandler) deleteModelWindow(c echo.Context, who caller) error {
	model, err := pathModel(c)
	if err != nil {
		return err
	}
	return done(c, h.windows.DeleteModelWindow(c.Request().Context(), who.workspace, model))
}

// pathModel returns the model in the path, with %2F for a slash of its name.
func pathModel(c echo.Context) (string, error) {
	model, err := url.PathUnescape(c.Param("model"))
	model = strings.TrimSpace(model)
	if err != nil || !tenants.IsModelName(model) {
		return "", tenants.Invalid{Field: "model", Message: fmt.Sprintf("must be a model's name of at most %d bytes, with %%2F for a slash", tenants.MaxModelName)}
	}
	return model, nil
}
