package tuning

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// liveSpan is the span of the figures.
const liveSpan = 7 * 24 * time.Hour

// figureOf is a module's recent effect.
type figureOf struct {
	Text   string // "38.5% of tokens not sent"
	Exact  string // on hover
	Failed string // reference in the log; "" if loaded
}

// live returns the figures of the last seven days by module name, and the figure of summaries by its
// setting's path.
func (h *Handler) live(ctx context.Context, workspace tenants.WorkspaceID) map[string]figureOf {
	now := h.deps.Now()
	filter := tenants.UsageFilter{From: now.Add(-liveSpan), To: now}.Aligned()
	figures := map[string]figureOf{}

	totals, err := h.deps.Usage.Totals(ctx, workspace, filter)
	figures[ipc.Name] = figureOf{
		Text:  components.Share(totals.Saved(), totals.Sendable()) + " of tokens not sent",
		Exact: components.Count(totals.Saved()) + " of " + components.Count(totals.Sendable()) + " tokens, " + components.Plural(totals.Epochs, "compaction"),
	}
	if totals.Sendable() == 0 {
		figures[ipc.Name] = figureOf{Text: "no request"}
	}
	figures[compactionbridge.Name] = figureOf{
		Text:  several(totals.Prompts.Bridged, "recovery", "recoveries"),
		Exact: "after " + components.Plural(totals.Prompts.Compactions, "compaction") + " that clients asked for",
	}
	fail(figures, h.failed(ctx, "totals", err), ipc.Name, compactionbridge.Name)

	made, err := h.deps.Sessions.Made(ctx, workspace, filter.From)
	counted := []string{summaryPath}
	for _, module := range modules.Catalog().Modules() {
		if module.Figure.Noun != "" {
			figures[module.Name] = figureOf{Text: module.Figure.Before + components.Plural(made.Inserts[module.Name], module.Figure.Noun)}
			counted = append(counted, module.Name)
		}
	}
	figures[summaryPath] = figureOf{
		Text:  several(made.Summaries, "summary", "summaries"),
		Exact: components.Count(made.Rejected) + " of them rejected",
	}
	fail(figures, h.failed(ctx, "made", err), counted...)

	var again int64
	if err = nil; totals.Exchanges > totals.Overhead.Measured { // otherwise a provider answered all of them
		again, err = h.deps.Exchanges.AnsweredAgain(ctx, workspace, filter.From)
	}
	figures[semanticcache.Name] = figureOf{
		Text: components.Plural(again, "answer") + " repeated", Exact: components.Share(again, totals.Exchanges) + " of requests",
	}
	fail(figures, h.failed(ctx, "answers", err), semanticcache.Name)
	return figures
}

// clientSpan is the span in which the preview's clients were seen.
const clientSpan = 90 * 24 * time.Hour

// clients returns the workspace's clients. After a failed read it returns no clients, and the preview covers
// all of them.
func (h *Handler) clients(ctx context.Context, workspace tenants.WorkspaceID) []string {
	now := h.deps.Now()
	choices, err := h.deps.Usage.UsageChoices(ctx, workspace, tenants.UsageFilter{From: now.Add(-clientSpan), To: now})
	_ = h.failed(ctx, "clients", err) // it is in the log
	return choices.Clients
}

// fail marks figures as failed to load.
func fail(figures map[string]figureOf, reference string, names ...string) {
	if reference == "" {
		return
	}
	for _, name := range names {
		figures[name] = figureOf{Failed: reference}
	}
}

// several formats a count with a noun that has an irregular plural.
func several(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return components.Count(n) + " " + many
}

func newReference() string { return uuid.NewString() }
