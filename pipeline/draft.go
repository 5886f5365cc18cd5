package pipeline

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// Draft holds a module's changes to an exchange. The chain takes them over if the module succeeds and drops
// them if it fails.
type Draft struct {
	View // changed by the module: Projection and Report, and Inserts by Inject and Point

	// Reply is the module's answer in the provider's place; nil if absent.
	Reply *Reply

	module string
}

// Take applies a draft to the exchange; nil has no effect.
func (e *Exchange) Take(draft *Draft) {
	if draft != nil {
		e.View = draft.View
	}
}

// Event reports something that the module did or could not do.
func (d *Draft) Event(kind, reason string, counts map[string]int) {
	d.Report.Events = append(d.Report.Events, ReportEntry{Module: d.module, Type: kind, Reason: reason, Counts: counts})
}

// Restart resets the report to the draft's current state. It keeps the events and modules so far.
func (d *Draft) Restart() {
	report := d.Standing()
	report.Events, report.Modules = d.Report.Events, d.Report.Modules
	d.Report = report
}

// Inject puts text into the prompt: at the newest user message, which must be new to the provider
// (PlacementTurn), or behind the system prompt (PlacementSystem). items are the parts of the text. The text
// stays in every later request of the lane. Inject returns false without changes if there is no such place,
// if the history must not be edited, if the request is outside the conversation, or if the prompt would
// exceed its Limit.
func (d *Draft) Inject(placement, text string, items []string) (injected bool) {
	if text = plain(text); d.Lane.Finalized || d.Request.ReadOnly != "" || d.Class.IsSide() || strings.TrimSpace(text) == "" {
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
	insert.Chain, insert.Tokens = d.Conversation.Chain[insert.Message+1], d.CountText(text)
	size := d.Size(d.Lane.Projection)
	if d.Limits.Limit > 0 && size+d.scale(insert.Tokens)+1 > d.Limits.Limit {
		return false
	}
	for _, item := range items {
		insert.Items = append(insert.Items, plain(item))
	}
	d.Lane.Inserts = append(slices.Clip(d.Lane.Inserts), insert)
	d.Report.After += d.Size(d.Lane.Projection) - size
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

// Exchange is a request on its way through the pipeline: the view of its modules, their changes, and the
// body, which modules can't access.
type Exchange struct {
	View

	Codec wire.Codec
	Body  *wire.Envelope

	// Reply is a module's answer in the provider's place; nil if the provider is asked.
	Reply *Reply
}

// Pieces returns the parts of the sealed body's list.
func (e *Exchange) Pieces() []wire.Piece {
	if e.Lane.Projection == nil {
		return []wire.Piece{{From: 0, To: len(e.Conversation.Digests)}}
	}
	pieces := make([]wire.Piece, 0, len(e.Lane.Projection.Parts)+1)
	for _, part := range e.Lane.Projection.Parts {
		pieces = append(pieces, wire.Piece{From: part.From, To: part.To, Raw: part.Raw})
	}
	return append(pieces, wire.Piece{From: e.Lane.Projection.Covers, To: len(e.Conversation.Digests)})
}

// Originals returns the raw bytes of the body's messages from index from to to (excluded).
func (e *Exchange) Originals(from, to int) []json.RawMessage {
	raw := make([]json.RawMessage, 0, to-from)
	for i := from; i < to; i++ {
		raw = append(raw, e.Body.Element(i))
	}
	return raw
}
