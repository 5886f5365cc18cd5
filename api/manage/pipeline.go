package manage

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/preview"
	"palimpsest/tenants"
)

// pipelineHandler serves the pipeline, its versions, and previews of another one on recorded sessions.
type pipelineHandler struct {
	pipelines tenants.Pipelines
	previews  *preview.Preview
	defaults  pipeline.Layer
}

func (h pipelineHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/pipeline", a.as(tenants.ReadConfig, h.getPipeline))
	group.PUT("/pipeline", a.as(tenants.ManagePipeline, h.putPipeline))
	group.GET("/pipeline/versions", a.as(tenants.ReadConfig, h.listPipelines))
	group.POST("/pipeline/versions/:version/restore", a.as(tenants.ManagePipeline, h.restorePipeline))
	group.POST("/pipeline/preview", a.as(tenants.ReadConfig, h.previewPipeline))
}

type pipelineJSON struct {
	Pipeline pipeline.Config  `json:"pipeline"`
	Sources  pipeline.Sources `json:"sources"` // the source of each value, by its path
	Version  int              `json:"version"` // 0 until one is saved
	YAML     string           `json:"yaml"`    // as saved
	SavedBy  *uuid.UUID       `json:"saved_by,omitempty"`
	SavedAt  *time.Time       `json:"saved_at,omitempty"`
}

func (h pipelineHandler) getPipeline(c echo.Context, who caller) error {
	saved, err := h.pipelines.Pipeline(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return h.answerPipeline(c, saved)
}

// putPipeline saves a whole pipeline: omitted settings get their defaults. With If-Match, it is saved only
// over that version.
func (h pipelineHandler) putPipeline(c echo.Context, who caller) error {
	switch mediaType(c.Request()) {
	case "application/yaml", "application/x-yaml", "text/yaml", echo.MIMEApplicationJSON:
	default:
		return errNotConfig
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	layer := pipeline.Layer{Source: pipeline.FromWorkspace, YAML: body}
	if err := modules.Catalog().Check(layer, h.defaults); err != nil {
		return err
	}
	ctx := c.Request().Context()
	newest, err := h.pipelines.Pipeline(ctx, who.workspace)
	if err != nil {
		return err
	}
	version, err := matched(c.Request().Header.Get("If-Match"), newest.Version)
	if err != nil {
		return err
	}
	saved, err := h.pipelines.SavePipeline(ctx, who.workspace, version, tenants.PipelineConfig{YAML: body, SavedBy: who.author()})
	if err != nil {
		return err
	}
	return h.answerPipeline(c, saved)
}

// matched returns the version that a request wants to save over.
func matched(header string, newest int) (int, error) {
	if header == "" || header == "*" {
		return newest, nil
	}
	version, err := strconv.Atoi(strings.Trim(header, `"`))
	if err != nil {
		return 0, tenants.Invalid{Field: "If-Match", Message: "must be the ETag of a pipeline"}
	}
	if version != newest {
		return 0, tenants.ErrConflict
	}
	return version, nil
}

func (h pipelineHandler) answerPipeline(c echo.Context, saved tenants.PipelineConfig) error {
	config, sources, err := modules.Catalog().Resolve(h.defaults, pipeline.WorkspaceLayer(saved.Modules, saved.YAML))
	if err != nil {
		return fmt.Errorf("saved pipeline, version %d: %w", saved.Version, err)
	}
	answer := pipelineJSON{Pipeline: config, Sources: sources, Version: saved.Version, YAML: saved.YAML}
	if saved.Version > 0 {
		answer.SavedBy, answer.SavedAt = &saved.SavedBy, &saved.SavedAt
	}
	c.Response().Header().Set("ETag", fmt.Sprintf("%q", strconv.Itoa(saved.Version)))
	return c.JSON(http.StatusOK, answer)
}
