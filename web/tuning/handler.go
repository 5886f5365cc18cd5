// Package tuning is the page of a workspace's pipeline settings: which modules run, in which order and how.
package tuning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Deps are the page's stores. All must be set.
type Deps struct {
	Pipelines tenants.Pipelines
	Windows   tenants.ModelWindows
	APIKeys   tenants.APIKeys
	Usage     tenants.UsageReader
	Sessions  session.Records
	Exchanges tenants.Exchanges

	Defaults pipeline.Layer // the pipeline of a workspace without one of its own

	Log *slog.Logger
	Now func() time.Time
}

// Handler handles the page's requests.
type Handler struct{ deps Deps }

// New returns a Handler.
func New(deps Deps) *Handler { return &Handler{deps: deps} }

// state is a workspace's saved settings at the time of a request.
type state struct {
	saved    tenants.PipelineConfig
	config   pipeline.Config // the effective configuration
	now      values          // the same in the page's form
	base     pipeline.Config // of a workspace without saved settings
	defaults values          // the same in the page's form
}

// Show shows the pipeline, with a preset filled in if requested.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	st, err := h.current(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	typed := st.now
	if preset, known := presetNamed(c.QueryParam("preset")); known {
		typed = st.now.with(preset).following(st.now)
	}
	page := newModel(who, st, typed)
	page.Module, page.Chosen = moduleNamed(c.QueryParam("module")), c.QueryParam("module") != ""
	page.SavedVersion, _ = strconv.Atoi(c.QueryParam("saved"))
	page.Windows.Done = windowDone(c.QueryParam("window"))
	return h.answer(c, http.StatusOK, who, page)
}

// Save saves the typed settings over the version that the form showed, or performs the action of one of the
// form's other buttons.
func (h *Handler) Save(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	form, err := c.FormParams()
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	version, err := strconv.Atoi(form.Get("version"))
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	st, err := h.current(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	typed := st.now.typed(form)
	if do := form.Get(doName); do != "" {
		page := newModel(who, st, typed.act(do, st.defaults))
		page.Version, page.Module = version, moduleNamed(form.Get(moduleName))
		if module, shows := strings.CutPrefix(do, showVerb); shows {
			page.Module, page.Chosen = moduleNamed(module), true
		}
		return h.answer(c, http.StatusOK, who, page)
	}
	wanted := typed.following(st.now.shown(form))
	if version != st.saved.Version {
		return h.conflict(c, who, st, version, wanted)
	}
	next, err := h.changed(st, wanted)
	if invalid, is := errors.AsType[pipeline.Invalid](err); is {
		page := newModel(who, st, typed)
		page.Module = moduleNamed(form.Get(moduleName))
		return h.answer(c, http.StatusUnprocessableEntity, who, page.refusing(invalid))
	}
	if err != nil {
		return err
	}
	return h.save(c, who, st, wanted, next, form)
}

// save saves a version if it differs from the current one.
func (h *Handler) save(c echo.Context, who tenants.Principal, st state, wanted values, next tenants.PipelineConfig, form url.Values) error {
	ctx := c.Request().Context()
	module := moduleNamed(form.Get(moduleName))
	if module == firstModule {
		module = ""
	}
	if len(differences(st.now, wanted)) == 0 {
		return layout.Redirect(c, paths.With(paths.Pipeline, moduleName, module))
	}
	next.SavedBy = who.User.ID
	stored, err := h.deps.Pipelines.SavePipeline(ctx, who.Workspace.ID, st.saved.Version, next)
	if errors.Is(err, tenants.ErrConflict) {
		version := st.saved.Version
		if st, err = h.current(ctx, who.Workspace.ID); err != nil {
			return err
		}
		return h.conflict(c, who, st, version, wanted)
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Pipeline, "saved", strconv.Itoa(stored.Version), moduleName, module))
}

// current returns the newest version and its effective pipeline.
func (h *Handler) current(ctx context.Context, workspace tenants.WorkspaceID) (state, error) {
	saved, err := h.deps.Pipelines.Pipeline(ctx, workspace)
	if err != nil {
		return state{}, err
	}
	st := state{saved: saved}
	if st.config, st.now, err = h.resolved(saved); err != nil {
		return state{}, err
	}
	if st.base, st.defaults, err = h.resolved(tenants.PipelineConfig{}); err != nil {
		return state{}, err
	}
	return st, nil
}

// resolved returns a version's effective pipeline.
func (h *Handler) resolved(saved tenants.PipelineConfig) (pipeline.Config, values, error) {
	config, _, err := modules.Catalog().Resolve(h.deps.Defaults, pipeline.WorkspaceLayer(saved.Modules, saved.YAML))
	if err != nil {
		return pipeline.Config{}, values{}, fmt.Errorf("saved pipeline, version %d: %w", saved.Version, err)
	}
	shown, err := valuesOf(config)
	return config, shown, err
}

// changed returns the saved version with the typed values as the next version. The error is a
// pipeline.Invalid that a person can fix.
func (h *Handler) changed(st state, typed values) (tenants.PipelineConfig, error) {
	next := tenants.PipelineConfig{Modules: typed.modules(st.base.Modules)}
	var err error
	if next.YAML, err = typed.document(st.saved.YAML, st.now, st.defaults); err != nil {
		return tenants.PipelineConfig{}, err
	}
	resolved, _, err := modules.Catalog().Resolve(h.deps.Defaults, pipeline.WorkspaceLayer(next.Modules, next.YAML))
	if err != nil {
		return tenants.PipelineConfig{}, err
	}
	return next, modules.Catalog().Validate(resolved)
}

// answer shows the page with the cards beside the form.
func (h *Handler) answer(c echo.Context, status int, who tenants.Principal, page model) error {
	page.Now = h.deps.Now()
	h.fill(c.Request().Context(), who, &page)
	page.Preview.Client, page.Preview.Target = c.FormValue(clientName), page.Typed.Set[targetPath]
	return layout.Page(c, status, layout.Frame{Title: "Compression", Section: layout.Pipeline, Who: who}, view(page))
}

// fill reads the figures and cards beside the form. A failed one shows its error; the others stay.
func (h *Handler) fill(ctx context.Context, who tenants.Principal, page *model) {
	page.Live = h.live(ctx, who.Workspace.ID)
	page.Preview.Clients = h.clients(ctx, who.Workspace.ID)
	h.fillWindows(ctx, who, &page.Windows)
	page.Keys = h.keys(ctx, who)
}

// failed logs an error and returns its reference in the log; "" without an error.
func (h *Handler) failed(ctx context.Context, card string, err error) string {
	if err == nil {
		return ""
	}
	reference, _, _ := strings.Cut(newReference(), "-")
	h.deps.Log.LogAttrs(ctx, slog.LevelError, "card failed",
		slog.String("page", "pipeline"), slog.String("card", card), slog.String("reference", reference), slog.Any("error", err))
	return reference
}
