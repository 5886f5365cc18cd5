package manage

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
)

// Pipelines keeps each workspace's pipeline, version by version.
type Pipelines interface {
	// PipelineHistory returns the saved versions, the newest first, at most 100.
	PipelineHistory(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.PipelineConfig, error)

	// Pipeline returns the newest version; one with the version 0 if none was
	// ever saved.
	Pipeline(ctx context.Context, workspace tenants.WorkspaceID) (tenants.PipelineConfig, error)

	// SavePipeline stores the version that follows the expected one. It returns
	// tenants.ErrConflict if that is not the newest.
	SavePipeline(ctx context.Context, workspace tenants.WorkspaceID, expectedVersion int, config tenants.PipelineConfig) (tenants.PipelineConfig, error)

	// PipelineVersions returns saved versions with their authors, the newest first: so
	// many of those before a version; 0: of all.
	PipelineVersions(ctx context.Context, workspace tenants.WorkspaceID, before, limit int) ([]tenants.PipelineConfig, error)

	// PipelineVersion returns tenants.ErrNotFound for a version that was never saved.
	PipelineVersion(ctx context.Context, workspace tenants.WorkspaceID, version int) (tenants.PipelineConfig, error)

	// RestorePipeline stores an earlier version as the one that follows the expected
	// one. Its errors are those of PipelineVersion and SavePipeline.
	RestorePipeline(ctx context.Context, workspace tenants.WorkspaceID, expectedVersion, version int, by uuid.UUID) (tenants.PipelineConfig, error)
}

type pipelineJSON struct {
	Pipeline pipeline.Config  `json:"pipeline"`
	Sources  pipeline.Sources `json:"sources"` // where each value comes from, by its path
	Version  int              `json:"version"` // 0 if nothing saved yet
	YAML     string           `json:"yaml"`    // what was saved
	SavedBy  *uuid.UUID       `json:"saved_by,omitempty"`
	SavedAt  *time.Time       `json:"saved_at,omitempty"`
}

func (s *server) getPipeline(c echo.Context, who caller) error {
	saved, err := s.Pipelines.Pipeline(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return s.answerPipeline(c, saved)
}

// putPipeline saves a whole pipeline: what the body leaves out has its default.
// With If-Match, it is saved only over that version.
func (s *server) putPipeline(c echo.Context, who caller) error {
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
	if err := modules.Catalog().Check(layer, s.Defaults); err != nil {
		return err
	}
	ctx := c.Request().Context()
	newest, err := s.Pipelines.Pipeline(ctx, who.workspace)
	if err != nil {
		return err
	}
	version, err := matched(c.Request().Header.Get("If-Match"), newest.Version)
	if err != nil {
		return err
	}
	saved, err := s.Pipelines.SavePipeline(ctx, who.workspace, version, tenants.PipelineConfig{YAML: body, SavedBy: who.author()})
	if err != nil {
		return err
	}
	return s.answerPipeline(c, saved)
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

func (s *server) answerPipeline(c echo.Context, saved tenants.PipelineConfig) error {
	config, sources, err := modules.Catalog().Resolve(s.Defaults, layerOf(saved))
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

// layerOf returns what a saved version sets.
func layerOf(saved tenants.PipelineConfig) pipeline.Layer {
	return pipeline.Layer{Source: pipeline.FromWorkspace, Modules: saved.Modules, YAML: saved.YAML}
}
