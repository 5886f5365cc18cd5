// Package tuning is the page on which a workspace sets its pipeline.
package tuning

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Store keeps each workspace's pipeline, version by version.
type Store interface {
	// Pipeline returns the newest version; one with the version 0 if none was
	// ever saved.
	Pipeline(ctx context.Context, workspace tenants.WorkspaceID) (tenants.PipelineConfig, error)

	// SavePipeline stores the version that follows the expected one. It returns
	// tenants.ErrConflict if that is not the newest.
	SavePipeline(ctx context.Context, workspace tenants.WorkspaceID, expectedVersion int, config tenants.PipelineConfig) (tenants.PipelineConfig, error)
}

// Handler answers the requests to the page.
type Handler struct {
	pipelines Store
	defaults  pipeline.Layer
}

// New returns a Handler; defaults is the pipeline of a workspace that has set none.
func New(pipelines Store, defaults pipeline.Layer) *Handler {
	return &Handler{pipelines: pipelines, defaults: defaults}
}

// Show shows the pipeline, with a preset filled in if one is asked for.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	saved, config, err := h.current(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	now := valuesOf(config)
	shown := now
	if preset, known := presetNamed(c.QueryParam("preset")); known {
		shown.TargetUtilization, shown.PreserveLastTurns = preset.Target, preset.Keep
		shown = shown.following(now)
	}
	page := newModel(who, saved.Version, shown, now, nil)
	page.SavedVersion, _ = strconv.Atoi(c.QueryParam("saved"))
	return answer(c, http.StatusOK, who, page)
}

// Save saves what was typed over the version that it was typed for.
func (h *Handler) Save(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	saved, config, err := h.current(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	typed := typedValues(c)
	wanted := typed.following(shownValues(c, valuesOf(config)))
	version, err := strconv.Atoi(c.FormValue("version"))
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	if version != saved.Version {
		return conflict(c, who, saved, config, wanted)
	}
	next, err := h.changed(saved, config, wanted)
	if invalid, is := errors.AsType[pipeline.Invalid](err); is {
		return answer(c, http.StatusUnprocessableEntity, who, newModel(who, version, typed, valuesOf(config), &invalid))
	}
	if err != nil {
		return err
	}
	next.SavedBy = who.User.ID
	stored, err := h.pipelines.SavePipeline(ctx, who.Workspace.ID, version, next)
	if errors.Is(err, tenants.ErrConflict) {
		if saved, config, err = h.current(ctx, who.Workspace.ID); err != nil {
			return err
		}
		return conflict(c, who, saved, config, wanted)
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Pipeline, "saved", strconv.Itoa(stored.Version)))
}

// current returns the newest version and the pipeline that it makes.
func (h *Handler) current(ctx context.Context, workspace tenants.WorkspaceID) (tenants.PipelineConfig, pipeline.Config, error) {
	saved, err := h.pipelines.Pipeline(ctx, workspace)
	if err != nil {
		return tenants.PipelineConfig{}, pipeline.Config{}, err
	}
	config, _, err := pipeline.Resolve(h.defaults, layerOf(saved))
	if err != nil {
		return tenants.PipelineConfig{}, pipeline.Config{}, fmt.Errorf("saved pipeline, version %d: %w", saved.Version, err)
	}
	return saved, config, nil
}

// changed returns the version that follows saved with the values that were typed.
// The error is a pipeline.Invalid for what a person can mend.
func (h *Handler) changed(saved tenants.PipelineConfig, config pipeline.Config, typed values) (tenants.PipelineConfig, error) {
	base, _, err := pipeline.Resolve(h.defaults)
	if err != nil {
		return tenants.PipelineConfig{}, fmt.Errorf("default pipeline: %w", err)
	}
	next := tenants.PipelineConfig{Modules: typed.modules(config.Modules, base.Modules)}
	if next.YAML, err = typed.yaml(saved.YAML, base); err != nil {
		return tenants.PipelineConfig{}, err
	}
	resolved, _, err := pipeline.Resolve(h.defaults, layerOf(next))
	if err != nil {
		return tenants.PipelineConfig{}, err
	}
	return next, resolved.Validate()
}

func layerOf(saved tenants.PipelineConfig) pipeline.Layer {
	return pipeline.Layer{Source: pipeline.FromWorkspace, Modules: saved.Modules, YAML: saved.YAML}
}

// conflict shows what somebody else saved beside what was typed.
func conflict(c echo.Context, who tenants.Principal, saved tenants.PipelineConfig, config pipeline.Config, typed values) error {
	page := newModel(who, saved.Version, typed, valuesOf(config), nil)
	page.Conflict = differences(valuesOf(config), typed)
	page.IsConflict = true
	page.ConflictAt = saved.SavedAt
	return answer(c, http.StatusConflict, who, page)
}

func answer(c echo.Context, status int, who tenants.Principal, page model) error {
	return layout.Page(c, status, layout.Frame{Title: "Pipeline", Section: layout.Pipeline, Who: who}, view(page))
}
