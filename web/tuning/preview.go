package tuning

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
)

const (
	// part is the query parameter with which the page's script requests only the preview.
	part = "part"

	// clientName is the input with the client whose sessions are previewed.
	clientName = "preview.client"
)

// PreviewDeps are the preview's sources. All but Within must be set.
type PreviewDeps struct {
	Compares *preview.Preview
	Readers  tenants.Data
	Archive  archive.Reader
	Codecs   map[conversation.Format]wire.Codec
	Within   time.Duration // limits counting identifiers; 0 means countWithin
	Log      *slog.Logger
}

// Previewer handles the preview's requests.
type Previewer struct {
	page *Handler
	deps PreviewDeps
}

// NewPreviewer returns a Previewer for the settings typed on a page.
func NewPreviewer(page *Handler, deps PreviewDeps) *Previewer {
	return &Previewer{page: page, deps: deps}
}

// previewModel is the card with the preview; until it is ready the page waits for it.
type previewModel struct {
	Ready  bool
	Found  preview.Comparison
	Target string // targetUtilization as typed
	Wrong  string // the error in the typed settings; "" if absent
	Failed string // reference in the log; "" if loaded

	Triggers []triggerFigures // the sessions' outcome with each trigger and the other typed settings

	HasCurve bool         // the curve was requested
	Curve    []curvePoint // of cost against fidelity

	HasIdentifiers bool // identifiers were counted, as far as possible
	Identifiers    identifiers

	Client  string   // whose sessions are previewed; "" for all
	Clients []string // all clients
}

// Show answers with the newest sessions replayed under the typed settings: a part of the card for the page's
// script, otherwise the whole page.
func (p *Previewer) Show(c echo.Context, who tenants.Principal) error {
	page, status, err := p.previewed(c, who)
	if err != nil {
		return err
	}
	switch c.QueryParam(part) {
	case "", curvePart:
		return p.page.answer(c, status, who, page)
	case detailsPart:
		return layout.Fragment(c, status, detailRows(page.Preview))
	default:
		return layout.Fragment(c, status, previewBody(page.Preview))
	}
}

// previewed returns the page with the typed settings and their preview, and the response's status.
func (p *Previewer) previewed(c echo.Context, who tenants.Principal) (model, int, error) {
	ctx := c.Request().Context()
	form, err := c.FormParams()
	if err != nil {
		return model{}, 0, echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	st, err := p.page.current(ctx, who.Workspace.ID)
	if err != nil {
		return model{}, 0, err
	}
	typed := st.now
	if who.Role.May(tenants.ManagePipeline) { // otherwise the form is locked, and a browser sends none of it
		typed = st.now.typed(form)
	}
	wanted := typed.following(st.now.shown(form))
	page, status := newModel(who, st, wanted), http.StatusOK
	page.Module = moduleNamed(form.Get(moduleName))
	next, err := p.page.changed(st, wanted)
	invalid, isInvalid := errors.AsType[pipeline.Invalid](err)
	switch {
	case isInvalid:
		status, page.Typed = http.StatusUnprocessableEntity, typed
		page = page.refusing(invalid)
		page.Preview.Wrong = invalid.Error()
	case err != nil:
		return model{}, 0, err
	default:
		page.Preview = p.of(ctx, who, st.config, next, form.Get(clientName), c.QueryParam(part))
		page.Preview.Target = wanted.Set[targetPath]
	}
	if version, err := strconv.Atoi(form.Get("version")); err == nil {
		page.Version = version // a preview saves nothing, so the form keeps the version that it showed
	}
	return page, status, nil
}

// of compares the saved config with the next one on the sessions of a client, or of all clients if "". asked
// is the requested part.
func (p *Previewer) of(ctx context.Context, who tenants.Principal, config pipeline.Config, next tenants.PipelineConfig, client, asked string) previewModel {
	picked := session.Selection{Newest: preview.Newest, Client: client}
	shown := previewModel{Ready: true, Client: client, HasCurve: asked == curvePart, HasIdentifiers: asked == "" || asked == curvePart || asked == detailsPart}
	wanted, _, err := modules.Catalog().Resolve(p.page.deps.Defaults, pipeline.WorkspaceLayer(next.Modules, next.YAML))
	if err == nil {
		shown.Found, err = p.deps.Compares.Compare(ctx, who.Workspace.ID, picked, config, wanted)
	}
	if err == nil && asked != detailsPart {
		shown.Triggers, err = p.triggers(ctx, who, picked, config, wanted, shown.Found)
	}
	if err == nil && shown.HasCurve {
		shown.Curve, err = p.curve(ctx, who, picked, config, wanted)
	}
	if err == nil && shown.HasIdentifiers {
		shown.Identifiers, err = p.identifiers(ctx, who, picked, config, config, wanted)
	}
	if err != nil {
		return previewModel{Failed: layout.Reference(ctx, p.deps.Log, "pipeline", "preview", err)}
	}
	return shown
}

// triggerFigures is the sessions' outcome with one trigger, beside that of the saved setting.
type triggerFigures struct {
	Label string
	Saved int64 // the prompts' cost with the saved setting, in millionths of a US dollar
	preview.Figures
}

// words describes the difference in cost.
func (t triggerFigures) words() string {
	money := "as much as"
	switch {
	case t.Cost > t.Saved:
		money = components.Money(t.Cost-t.Saved) + " more than"
	case t.Cost < t.Saved:
		money = components.Money(t.Saved-t.Cost) + " less than"
	}
	return "“" + t.Label + "” would have cost " + money + " your saved setting, in " + components.Plural(int64(t.Epochs), "compaction") +
		", with " + components.Share(t.Verbatim, t.Received) + " of the prompts word for word."
}

// triggers returns the figures of both triggers. The wanted one's are known already.
func (p *Previewer) triggers(ctx context.Context, who tenants.Principal, picked session.Selection, saved, wanted pipeline.Config, known preview.Comparison) ([]triggerFigures, error) {
	if !wanted.Runs(ipc.Name) {
		return nil, nil
	}
	both := []triggerFigures{
		{Label: components.TriggerLabel(ipc.TriggerWindow), Saved: known.Saved.Cost, Figures: known.Wanted},
		{Label: components.TriggerLabel(ipc.TriggerBreakEven), Saved: known.Saved.Cost, Figures: known.Wanted},
	}
	other := &both[1]
	if pipeline.SettingsOf[ipc.Config](wanted).Trigger == ipc.TriggerBreakEven {
		other = &both[0]
		pipeline.Change[ipc.Config](&wanted).Trigger = ipc.TriggerWindow
	} else {
		pipeline.Change[ipc.Config](&wanted).Trigger = ipc.TriggerBreakEven
	}
	found, err := p.deps.Compares.Compare(ctx, who.Workspace.ID, picked, saved, wanted)
	other.Figures = found.Wanted
	return both, err
}
