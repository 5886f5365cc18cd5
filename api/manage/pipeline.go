package manage

import (
	"encoding/json"
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
	"palimpsest/pipeline/session"
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
	group.POST("/pipeline/preview", a.as(tenants.ReadConfig, withBody(h.previewPipeline)))
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

type pipelineVersionJSON struct {
	Version int           `json:"version"`
	InForce bool          `json:"in_force"`
	SavedBy uuid.UUID     `json:"saved_by"`
	Author  string        `json:"author"` // an e-mail address or an API key's name; "" for the product, or if they left
	SavedAt time.Time     `json:"saved_at"`
	YAML    string        `json:"yaml"`
	Changes []settingJSON `json:"changes"`         // against the version before
	Problem string        `json:"error,omitempty"` // why it can no longer be restored
}

// settingJSON is a changed setting.
type settingJSON struct {
	Field  string `json:"field"`
	Before string `json:"before"` // in YAML
	After  string `json:"after"`
}

func (h pipelineHandler) listPipelines(c echo.Context, who caller) error {
	limit, err := queryLimit(c)
	if err != nil {
		return err
	}
	before := 0
	if cursor := c.QueryParam("cursor"); cursor != "" {
		if before, err = strconv.Atoi(cursor); err != nil || before < 1 {
			return wrongCursor()
		}
	}
	ctx := c.Request().Context()
	// One version more than the page, so that its last one can be compared with its predecessor.
	versions, err := h.pipelines.PipelineVersions(ctx, who.workspace, before, limit+1)
	if err != nil {
		return err
	}
	newest, err := h.pipelines.Pipeline(ctx, who.workspace)
	if err != nil {
		return err
	}
	var data []pipelineVersionJSON
	for i, version := range versions[:min(limit, len(versions))] {
		older := tenants.PipelineConfig{}
		if i+1 < len(versions) {
			older = versions[i+1]
		}
		told := h.pipelineVersion(older, version)
		told.InForce = version.Version == newest.Version
		data = append(data, told)
	}
	next := ""
	if len(versions) > limit {
		next = strconv.Itoa(versions[limit-1].Version)
	}
	return answerPage(c, data, next)
}

// pipelineVersion describes a version and its changes since the one before.
func (h pipelineHandler) pipelineVersion(before, version tenants.PipelineConfig) pipelineVersionJSON {
	told := pipelineVersionJSON{
		Version: version.Version, SavedBy: version.SavedBy, Author: version.Author, SavedAt: version.SavedAt, YAML: version.YAML, Changes: []settingJSON{},
	}
	if document, err := modules.Catalog().Document(pipeline.WorkspaceLayer(version.Modules, version.YAML)); err == nil {
		told.YAML = document
	}
	if err := modules.Catalog().Check(pipeline.WorkspaceLayer(version.Modules, version.YAML), h.defaults); err != nil {
		told.Problem = err.Error()
		return told
	}
	changes, err := modules.Catalog().Changes(pipeline.WorkspaceLayer(before.Modules, before.YAML), pipeline.WorkspaceLayer(version.Modules, version.YAML), h.defaults)
	if err != nil {
		return told // the one before is not accepted any more and says so itself
	}
	for _, change := range changes {
		told.Changes = append(told.Changes, settingJSON{Field: change.Path, Before: change.Before, After: change.After})
	}
	return told
}

// restorePipeline saves an earlier version again. With If-Match, it is saved only
// over that version.
func (h pipelineHandler) restorePipeline(c echo.Context, who caller) error {
	ctx := c.Request().Context()
	number, err := strconv.Atoi(c.Param("version"))
	if err != nil {
		return tenants.ErrNotFound
	}
	version, err := h.pipelines.PipelineVersion(ctx, who.workspace, number)
	if err != nil {
		return err
	}
	if err := modules.Catalog().Check(pipeline.WorkspaceLayer(version.Modules, version.YAML), h.defaults); err != nil {
		return err
	}
	newest, err := h.pipelines.Pipeline(ctx, who.workspace)
	if err != nil {
		return err
	}
	expected, err := matched(c.Request().Header.Get("If-Match"), newest.Version)
	if err != nil {
		return err
	}
	if number == newest.Version {
		return tenants.Invalid{Field: "version", Message: "is the current version already"}
	}
	restored, err := h.pipelines.RestorePipeline(ctx, who.workspace, expected, number, who.author())
	if err != nil {
		return err
	}
	return h.answerPipeline(c, restored)
}

type figuresJSON struct {
	Sessions int   `json:"sessions"`
	Requests int   `json:"requests"`
	Epochs   int   `json:"epochs"`
	Rewrites int   `json:"cache_rewrites"`
	Received int64 `json:"tokens_before"`
	Sent     int64 `json:"tokens_after"`
	Verbatim int64 `json:"tokens_verbatim"`
	AtL3     int64 `json:"tokens_at_l3"`
	Deepest  int   `json:"deepest_level"`
	TooLong  int   `json:"sessions_too_long"`
	Cost     int64 `json:"cost_microusd"`
	Net      int64 `json:"net_microusd"`
	Reach    int   `json:"reach"`

	ReachReceived int64 `json:"reach_tokens_before"`
	ReachSent     int64 `json:"reach_tokens_after"`
}

// actualJSON is what happened, without levels if they are no longer stored.
type actualJSON struct {
	figuresJSON

	Verbatim *int64 `json:"tokens_verbatim,omitempty"`
	AtL3     *int64 `json:"tokens_at_l3,omitempty"`
	Deepest  *int   `json:"deepest_level,omitempty"`
}

type comparisonJSON struct {
	Sample bool        `json:"sample"`           // based on invented sessions, because the workspace has too few
	Was    *actualJSON `json:"actual,omitempty"` // absent for a sample
	Saved  figuresJSON `json:"saved"`
	Wanted figuresJSON `json:"preview"`
}

// previewPipeline shows the effect of a pipeline on the newest sessions. Omitted settings get their defaults,
// as in a saved one.
func (h pipelineHandler) previewPipeline(c echo.Context, who caller, asked struct {
	Pipeline json.RawMessage `json:"pipeline"`
	Sessions int             `json:"sessions"`
}) error {
	if asked.Sessions == 0 {
		asked.Sessions = preview.Newest
	}
	if asked.Sessions < 1 || asked.Sessions > preview.Most {
		return tenants.Invalid{Field: "sessions", Message: "must be between 1 and 200"}
	}
	wanted, _, err := modules.Catalog().Resolve(h.defaults, pipeline.Layer{Source: pipeline.FromWorkspace, YAML: string(asked.Pipeline)}) // JSON is YAML
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	newest, err := h.pipelines.Pipeline(ctx, who.workspace)
	if err != nil {
		return err
	}
	saved, _, err := modules.Catalog().Resolve(h.defaults, pipeline.WorkspaceLayer(newest.Modules, newest.YAML))
	if err != nil {
		return err
	}
	found, err := h.previews.Compare(ctx, who.workspace, session.Selection{Newest: asked.Sessions}, saved, wanted)
	if err != nil {
		return err
	}
	answer := comparisonJSON{Sample: found.IsSample, Saved: figuresJSON(found.Saved), Wanted: figuresJSON(found.Wanted)}
	if !found.IsSample {
		answer.Was = &actualJSON{figuresJSON: figuresJSON(found.Was)}
		if found.HasLevels {
			answer.Was.Verbatim, answer.Was.AtL3, answer.Was.Deepest = &found.Was.Verbatim, &found.Was.AtL3, &found.Was.Deepest
		}
	}
	return c.JSON(http.StatusOK, answer)
}
