package tuning

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
)

const (
	// part is the query parameter with which the page's script asks for the preview alone.
	part = "part"

	// clientName is the input with the client whose sessions are looked at.
	clientName = "preview.client"
)

// Comparer says what other settings would have made of a workspace's sessions.
type Comparer interface {
	// Compare compares two configs on the sessions of a workspace that are picked.
	Compare(ctx context.Context, workspace tenants.WorkspaceID, picked session.Picked, saved, wanted pipeline.Config) (preview.Comparison, error)
}

// Previewer answers the requests for the preview.
type Previewer struct {
	page     *Handler
	compares Comparer
	log      *slog.Logger
}

// NewPreviewer returns a Previewer of what is typed on a page.
func NewPreviewer(page *Handler, compares Comparer, log *slog.Logger) *Previewer {
	return &Previewer{page: page, compares: compares, log: log}
}

// previewModel is the card with the preview; the zero value has nothing yet.
type previewModel struct {
	Ready  bool
	Found  preview.Comparison
	Target string // targetUtilization as it was typed
	Wrong  string // what is wrong with what was typed; empty: nothing
	Failed string // reference in the log; empty: fine

	Client  string   // whose sessions are looked at; empty: all
	Clients []string // that there are
}

// Show answers with what the settings that were typed would have made of the newest
// sessions: the card alone for the page's script, else the page with it.
func (p *Previewer) Show(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	form, err := c.FormParams()
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	st, err := p.page.current(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	typed := st.now
	if who.Role.May(tenants.ManagePipeline) { // else the form is locked, and a browser sends none of it
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
		return err
	default:
		page.Preview = p.of(ctx, who, st.config, next, form.Get(clientName))
		page.Preview.Target = wanted.Set[targetPath]
	}
	if c.QueryParam(part) != "" {
		return layout.Fragment(c, status, previewBody(page.Preview))
	}
	if version, err := strconv.Atoi(form.Get("version")); err == nil {
		page.Version = version // a preview saves nothing: what is saved over is what was shown
	}
	return p.page.answer(c, status, who, page)
}

// of compares the saved config with the next one on the sessions of a client; empty: of
// all.
func (p *Previewer) of(ctx context.Context, who tenants.Principal, config pipeline.Config, next tenants.PipelineConfig, client string) previewModel {
	wanted, _, err := pipeline.Resolve(p.page.deps.Defaults, layerOf(next))
	var found preview.Comparison
	if err == nil {
		found, err = p.compares.Compare(ctx, who.Workspace.ID, session.Picked{Newest: preview.Newest, Client: client}, config, wanted)
	}
	if err != nil {
		return previewModel{Failed: layout.Reference(ctx, p.log, "pipeline", "preview", err)}
	}
	return previewModel{Ready: true, Found: found, Client: client}
}

// What figures mean, for those who ask.
const (
	netHint      = "what prompts would have cost as they were sent, less what they cost, at list prices"
	rewritesHint = "epochs while the provider’s cache was warm"
)

// figure is a row of the preview.
type figure struct {
	Name, Hint    string
	Saved, Wanted string
	Change        string // how far the two are apart; empty: not at all
	IsGood, IsBad bool
}

// rows returns the figures that the card shows.
func (m previewModel) rows() []figure {
	saved, wanted := m.Found.Saved, m.Found.Wanted
	rows := []figure{
		{Name: "Net", Hint: netHint, Saved: components.Money(saved.Net), Wanted: components.Money(wanted.Net)},
		{Name: "Tokens sent", Saved: components.Short(saved.Sent), Wanted: components.Short(wanted.Sent)},
		{Name: "Epochs", Hint: "steps in which a prompt was compressed", Saved: count(saved.Epochs), Wanted: count(wanted.Epochs)},
		{Name: "Cache rewrites", Hint: rewritesHint, Saved: count(saved.Rewrites), Wanted: count(wanted.Rewrites)},
		{Name: "Deepest level", Saved: "L" + strconv.Itoa(saved.Deepest), Wanted: "L" + strconv.Itoa(wanted.Deepest)},
		{Name: "Sessions past the window", Hint: "with a prompt that the provider would refuse for its length", Saved: count(saved.TooLong), Wanted: count(wanted.TooLong)},
	}
	mark(&rows[0], wanted.Net-saved.Net, components.Money(abs(wanted.Net-saved.Net)), false)
	mark(&rows[1], wanted.Sent-saved.Sent, components.Short(abs(wanted.Sent-saved.Sent)), true)
	mark(&rows[2], int64(wanted.Epochs-saved.Epochs), count(int(abs(int64(wanted.Epochs-saved.Epochs)))), true)
	mark(&rows[3], int64(wanted.Rewrites-saved.Rewrites), count(int(abs(int64(wanted.Rewrites-saved.Rewrites)))), true)
	mark(&rows[4], int64(wanted.Deepest-saved.Deepest), strconv.Itoa(int(abs(int64(wanted.Deepest-saved.Deepest)))), true)
	mark(&rows[5], int64(wanted.TooLong-saved.TooLong), count(int(abs(int64(wanted.TooLong-saved.TooLong)))), true)
	return rows
}

// mark says how far the two figures of a row are apart, and whether that is good.
func mark(row *figure, change int64, words string, isLessBetter bool) {
	switch {
	case change == 0:
		return
	case change > 0:
		row.Change = "+" + words
	default:
		row.Change = "−" + words
	}
	row.IsGood = change < 0 == isLessBetter
	row.IsBad = !row.IsGood
}

func count(n int) string { return components.Count(int64(n)) }

func abs(n int64) int64 { return max(n, -n) }
