package pipelines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// YAML shows the pipeline as YAML: what the workspace has set, or every setting.
func (h *Handler) YAML(c echo.Context, who tenants.Principal) error {
	now, err := h.now(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	page := yamlModel{
		MayChange: who.Role.May(tenants.ManagePipeline), Version: now.saved.Version,
		Whole: c.QueryParam("show") == "all", Text: now.text, Problem: now.problem,
	}
	if page.Whole {
		page.Text = now.whole
	}
	page.Saved, _ = strconv.Atoi(c.QueryParam("saved"))
	page.Same = c.QueryParam("saved") == "same"
	return answer(c, http.StatusOK, who, "Pipeline as YAML", yamlView(page), layout.Breadcrumb{Title: "YAML"})
}

// Download answers with what YAML shows, as a file.
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

// Edit shows the form for the YAML, with every setting in it if that is asked for.
func (h *Handler) Edit(c echo.Context, who tenants.Principal) error {
	now, err := h.now(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	page := editModel{Version: now.saved.Version, Typed: now.text, Whole: now.whole}
	if c.QueryParam("from") == "all" {
		page.Typed = now.whole
	}
	return answerEdit(c, http.StatusOK, who, page)
}

// Save saves the YAML that was typed over the version that it was typed for.
func (h *Handler) Save(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	now, err := h.now(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	over, err := strconv.Atoi(c.FormValue("version"))
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	page := editModel{Version: over, Typed: strings.ReplaceAll(c.FormValue("yaml"), "\r\n", "\n"), Whole: now.whole}
	next := tenants.PipelineConfig{YAML: page.Typed, SavedBy: who.User.ID}
	err = modules.Catalog().Check(pipeline.WorkspaceLayer(next.Modules, next.YAML), h.defaults)
	if faults, is := errors.AsType[pipeline.Faults](err); is {
		page.Faults = components.FaultsOf(page.Typed, faults)
		return answerEdit(c, http.StatusUnprocessableEntity, who, page)
	}
	if err != nil {
		return err
	}
	if over == now.saved.Version && strings.TrimSpace(page.Typed) == strings.TrimSpace(now.text) {
		return layout.Redirect(c, paths.With(paths.PipelineYAML, "saved", "same"))
	}
	stored, err := h.store.SavePipeline(ctx, who.Workspace.ID, over, next)
	if errors.Is(err, tenants.ErrConflict) {
		return h.conflict(c, who, page)
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.PipelineYAML, "saved", strconv.Itoa(stored.Version)))
}

// conflict shows what someone else saved beside what was typed.
func (h *Handler) conflict(c echo.Context, who tenants.Principal, page editModel) error {
	newest, err := h.store.PipelineVersions(c.Request().Context(), who.Workspace.ID, 0, 1)
	if err != nil {
		return err
	}
	theirs := tenants.PipelineConfig{}
	if len(newest) > 0 {
		theirs = newest[0]
	}
	page.IsConflict, page.Version, page.Theirs = true, theirs.Version, documentOf(theirs)
	page.TheirsAt, page.TheirsBy = theirs.SavedAt, authorOf(theirs)
	if page.Changes, err = h.changes(theirs, tenants.PipelineConfig{YAML: page.Typed}); err != nil {
		return err
	}
	return answerEdit(c, http.StatusConflict, who, page)
}

// pipelineNow is a workspace's pipeline as it holds.
type pipelineNow struct {
	saved   tenants.PipelineConfig
	text    string // what the workspace has set
	whole   string // every setting; the defaults where there is a problem
	problem string // why the newest version is not accepted any more; empty if it is
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

func answerEdit(c echo.Context, status int, who tenants.Principal, page editModel) error {
	return answer(c, status, who, "Edit YAML", editView(page), layout.Breadcrumb{Title: "YAML", Path: paths.PipelineYAML}, layout.Breadcrumb{Title: "Edit"})
}
