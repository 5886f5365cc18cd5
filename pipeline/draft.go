package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"palimpsest/pipeline/session"
)

// Draft is what a module wants an exchange to become. The chain takes it over if the module
// succeeds; if it fails the draft is dropped, and nothing has happened.
type Draft struct {
	View // as the module leaves it: Projection and Report, and Inserts by Inject and Point

	// Reply is the answer that the module gives in the provider's place; nil if it gives none.
	Reply *Reply

	module string
}

// Take has the exchange become what a draft wants; nil leaves it as it is.
func (e *Exchange) Take(draft *Draft) {
	if draft != nil {
		e.View = draft.View
	}
}

// Event reports something that the module did or could not do.
func (d *Draft) Event(kind, reason string, counts map[string]int) {
	d.Report.Events = append(d.Report.Events, ReportEntry{Module: d.module, Type: kind, Reason: reason, Counts: counts})
}

// Restart reports on the draft as it stands, but for the events and modules so far.
func (d *Draft) Restart() {
	report := d.Standing()
	report.Events, report.Modules = d.Report.Events, d.Report.Modules
	d.Report = report
}

// Inject puts text into the prompt: at the newest message of the user, which the
// provider must not have seen yet (PlacementTurn), or behind the system prompt
// (PlacementSystem). items are what the text holds. It stays there in every later
// request of the lane. It is false, and nothing is done, if there is no such place,
// if the history must not be edited, if the request stands beside the conversation,
// or if the prompt would exceed its Limit.
func (d *Draft) Inject(placement, text string, items []string) (injected bool) {
	if text = plain(text); d.Finalized || d.Request.ReadOnly != "" || d.Class.IsSide() || strings.TrimSpace(text) == "" {
		return false
	}
	insert := session.Insert{Message: session.InSystem, Module: d.module, Text: text}
	if placement != PlacementSystem {
		place, found := d.place(text)
		if !found {
			return false
		}
		insert.Message = place
	}
	insert.Chain, insert.Tokens = d.Chain[insert.Message+1], d.CountText(text)
	size := d.Size(d.Projection)
	if d.Limit > 0 && size+d.scale(insert.Tokens)+1 > d.Limit {
		return false
	}
	for _, item := range items {
		insert.Items = append(insert.Items, plain(item))
	}
	d.Inserts = append(slices.Clip(d.Inserts), insert)
	d.Report.After += d.Size(d.Projection) - size
	injections := maps.Clone(d.Report.Injected)
	if injections == nil {
		injections = map[string]int{}
	}
	injections[d.module] += insert.Count()
	d.Report.Injected = injections
	d.Report.Events = append(d.Report.Events, ReportEntry{
		Module: d.module, Type: InjectedType, Reason: cmp.Or(placement, PlacementTurn),
		Counts: map[string]int{"items": insert.Count(), "tokens": insert.Tokens},
	})
	return true
}

// Point puts text in place of a tool result, block of message, of which message source
// has the rest. The provider must not have seen the message yet; tokens is by how many
// o200k tokens it becomes longer, below 0. It stays so in every later request of the
// lane for as long as both messages are sent as they came.
func (d *Draft) Point(message, block, source int, text string, tokens int) {
	size := d.Size(d.Projection)
	d.Inserts = append(slices.Clip(d.Inserts), session.Insert{
		Message: message, Chain: d.Chain[message+1], Module: d.module, Text: plain(text), Tokens: tokens, Block: block + 1, Source: source,
	})
	d.Report.After += d.Size(d.Projection) - size
	d.Report.countPointers(&d.View, d.module)
}
