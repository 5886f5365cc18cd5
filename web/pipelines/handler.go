// Package pipelines is the pages of a workspace's pipeline besides its settings: every version of it, and the
// pipeline as YAML.
package pipelines

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// pageSize is the number of versions on a page of the history.
const pageSize = 25

// Handler handles the pages' requests.
type Handler struct {
	store    tenants.Pipelines
	defaults pipeline.Layer
}

// New returns a Handler; defaults is the pipeline of a workspace without one of its own.
func New(store tenants.Pipelines, defaults pipeline.Layer) *Handler {
	return &Handler{store: store, defaults: defaults}
}

// History lists the versions, newest first.
func (h *Handler) History(c echo.Context, who tenants.Principal) error {
	ctx, before := c.Request().Context(), 0
	if cursor := c.QueryParam("before"); cursor != "" {
		var err error
		if before, err = strconv.Atoi(cursor); err != nil || before < 1 {
			return echo.NewHTTPError(http.StatusBadRequest)
		}
	}
	// One more than the page shows, because the last row is compared with it.
	versions, err := h.store.PipelineVersions(ctx, who.Workspace.ID, before, pageSize+1)
	if err != nil {
		return err
	}
	newest, err := h.store.Pipeline(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	page := historyModel{Before: before, MayRestore: who.Role.May(tenants.ManagePipeline)}
	for i, version := range versions[:min(pageSize, len(versions))] {
		older := tenants.PipelineConfig{}
		if i+1 < len(versions) {
			older = versions[i+1]
		}
		page.Rows = append(page.Rows, h.row(older, version, newest.Version))
	}
	if len(versions) > pageSize {
		page.Next = versions[pageSize-1].Version
	}
	page.Restored, _ = strconv.Atoi(c.QueryParam("restored"))
	return answer(c, http.StatusOK, who, "History", historyView(page), layout.Breadcrumb{Title: "History"})
}

// Show shows a version beside the current one.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	page, err := h.version(c, who)
	if err != nil {
		return err
	}
	return answerVersion(c, http.StatusOK, who, page)
}

// ConfirmRestore asks whether to restore a version.
func (h *Handler) ConfirmRestore(c echo.Context, who tenants.Principal) error {
	page, err := h.version(c, who)
	if err != nil {
		return err
	}
	page.Asks = page.mayRestore()
	return answerVersion(c, http.StatusOK, who, page)
}

// Restore saves a version again, over the version that was current when the form was shown.
func (h *Handler) Restore(c echo.Context, who tenants.Principal) error {
	page, err := h.version(c, who)
	if err != nil {
		return err
	}
	if !page.mayRestore() {
		return answerVersion(c, http.StatusUnprocessableEntity, who, page)
	}
	over, err := strconv.Atoi(c.FormValue("over"))
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	restored, err := h.store.RestorePipeline(c.Request().Context(), who.Workspace.ID, over, page.Version, who.User.ID)
	if errors.Is(err, tenants.ErrConflict) {
		if page, err = h.version(c, who); err != nil {
			return err
		}
		page.IsConflict, page.Asks = true, page.mayRestore()
		return answerVersion(c, http.StatusConflict, who, page)
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.PipelineHistory, "restored", strconv.Itoa(restored.Version)))
}

// version returns the page of the path's version.
func (h *Handler) version(c echo.Context, who tenants.Principal) (versionModel, error) {
	ctx := c.Request().Context()
	number, err := strconv.Atoi(c.Param("version"))
	if err != nil {
		return versionModel{}, tenants.ErrNotFound
	}
	version, err := h.store.PipelineVersion(ctx, who.Workspace.ID, number)
	if err != nil {
		return versionModel{}, err
	}
	older, err := h.store.PipelineVersions(ctx, who.Workspace.ID, number, 1)
	if err != nil {
		return versionModel{}, err
	}
	newest, err := h.store.Pipeline(ctx, who.Workspace.ID)
	if err != nil {
		return versionModel{}, err
	}
	before := tenants.PipelineConfig{}
	if len(older) > 0 {
		before = older[0]
	}
	page := versionModel{row: h.row(before, version, newest.Version), MayChange: who.Role.May(tenants.ManagePipeline), Newest: newest}
	page.YAML, page.NewestYAML = documentOf(version), documentOf(newest)
	if page.Problem == "" {
		// A version without a Problem resolves. The newest version's problem is on its own page.
		page.Against, _ = h.changes(version, newest)
	}
	return page, nil
}

// row returns a version's changes since the version before.
func (h *Handler) row(before, version tenants.PipelineConfig, newest int) row {
	told := row{Version: version.Version, InForce: version.Version == newest, At: version.SavedAt, Author: authorOf(version)}
	if err := modules.Catalog().Check(pipeline.WorkspaceLayer(version.Modules, version.YAML), h.defaults); err != nil {
		told.Problem = err.Error()
		return told
	}
	var err error
	if told.Changes, err = h.changes(before, version); err != nil {
		told.Unknown = true // the previous version is no longer valid
	}
	return told
}

func (h *Handler) changes(before, after tenants.PipelineConfig) ([]change, error) {
	found, err := modules.Catalog().Changes(pipeline.WorkspaceLayer(before.Modules, before.YAML), pipeline.WorkspaceLayer(after.Modules, after.YAML), h.defaults)
	if err != nil {
		return nil, fmt.Errorf("compare versions %d and %d: %w", before.Version, after.Version, err)
	}
	return worded(found), nil
}

// documentOf returns a version's settings as YAML, also if they were saved as JSON. If the version is no
// longer valid, it returns the saved text.
func documentOf(saved tenants.PipelineConfig) string {
	document, err := modules.Catalog().Document(pipeline.WorkspaceLayer(saved.Modules, saved.YAML))
	if err != nil {
		return saved.YAML
	}
	return inBlocks(document)
}

// inBlocks returns a JSON document, the API's format, as block YAML; any other unchanged.
func inBlocks(document string) string {
	var node yaml.Node
	if !strings.HasPrefix(document, "{") || yaml.Unmarshal([]byte(document), &node) != nil {
		return document
	}
	plain(&node)
	var out strings.Builder
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if encoder.Encode(&node) != nil {
		return document
	}
	return out.String()
}

// plain removes JSON's braces and quotes from a node; lists stay on one line.
func plain(node *yaml.Node) {
	if node.Kind != yaml.SequenceNode {
		node.Style = 0
	}
	for _, inside := range node.Content {
		plain(inside)
	}
}

func answerVersion(c echo.Context, status int, who tenants.Principal, page versionModel) error {
	title := "Version " + strconv.Itoa(page.Version)
	return answer(c, status, who, title, versionView(page), layout.Breadcrumb{Title: "History", Path: paths.PipelineHistory}, layout.Breadcrumb{Title: title})
}

// answer shows a page below the pipeline's.
func answer(c echo.Context, status int, who tenants.Principal, title string, content templ.Component, way ...layout.Breadcrumb) error {
	breadcrumbs := append([]layout.Breadcrumb{{Title: "Pipeline", Path: paths.Pipeline}}, way...)
	return layout.Page(c, status, layout.Frame{Title: title, Section: layout.Pipeline, Who: who, Breadcrumbs: breadcrumbs}, content)
}
