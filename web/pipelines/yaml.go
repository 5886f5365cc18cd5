package pipelines

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// YAML shows the pipeline as YAML: only the workspace's own settings, or all.
func (h *Handler) YAML(c echo.Context, who tenants.Principal) error {
	now, err := h.now(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	page := yamlModel{Version: now.saved.Version, Whole: c.QueryParam("show") == "all", Text: now.text, Problem: now.problem}
	if page.Whole {
		page.Text = now.whole
	}
	return answer(c, http.StatusOK, who, "Pipeline as YAML", yamlView(page), layout.Breadcrumb{Title: "YAML"})
}

// Download answers with YAML's text as a file.
func (h *Handler) Download(c echo.Context, who tenants.Principal) error {
	now, err := h.now(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	text := now.text
	if c.QueryParam("show") == "all" {
		text = now.whole
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentDisposition, `attachment; filename="pipeline.yaml"`)
	header.Set(echo.HeaderCacheControl, "no-store")
	return c.Blob(http.StatusOK, "application/yaml; charset=utf-8", []byte(text))
}

// pipelineNow is a workspace's current pipeline.
type pipelineNow struct {
	saved   tenants.PipelineConfig
	text    string // the workspace's own settings
	whole   string // every setting; the defaults if there is a problem
	problem string // why the newest version is no longer valid; "" if it is
}

func (h *Handler) now(ctx context.Context, workspace tenants.WorkspaceID) (pipelineNow, error) {
	saved, err := h.store.Pipeline(ctx, workspace)
	if err != nil {
		return pipelineNow{}, err
	}
	now := pipelineNow{saved: saved, text: documentOf(saved)}
	config, _, err := modules.Catalog().Resolve(h.defaults, pipeline.WorkspaceLayer(saved.Modules, saved.YAML))
	if invalid, is := errors.AsType[pipeline.Invalid](err); is {
		now.problem = invalid.Error()
		config, _, err = modules.Catalog().Resolve(h.defaults)
	}
	if err != nil {
		return pipelineNow{}, fmt.Errorf("pipeline, version %d: %w", saved.Version, err)
	}
	now.whole = config.YAML()
	return now, nil
}
