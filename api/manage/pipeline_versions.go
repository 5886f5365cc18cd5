package manage

import (
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
)

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
