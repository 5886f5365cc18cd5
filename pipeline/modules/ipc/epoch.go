package ipc

import (
	"context"

	"palimpsest/pipeline"
	"palimpsest/pipeline/certificate"
	"palimpsest/pipeline/session"
)

// certify compares a projection with the originals that it replaces, and stores the result in its
// certificate.
func (p *planner) certify(projection *session.Projection) error {
	covered := 0
	for covered < len(p.history.turns) && p.history.turns[covered].From < projection.Covers {
		covered++
	}
	originals, err := p.renderer.opening.originals(p.history.turns[:covered])
	if err != nil {
		return err
	}
	projection.Certificate = certificate.Make(projection, originals)
	return nil
}

// complete certifies a projection. If it has lost something, complete plans again with higher
// goals, up to the prompt's limit, and returns the projection with the smallest loss.
func (m *Module) complete(ctx context.Context, p *planner, projection *session.Projection, size int) (*planner, *session.Projection, error) {
	if err := p.certify(projection); err != nil {
		return nil, nil, err
	}
	exchange := p.history.exchange
	for _, share := range []float64{0.5, 1} {
		if projection.Certificate.IsComplete() {
			break
		}
		budget := measure(exchange, size)
		budget.raise(share)
		wider := newPlannerFor(budget, exchange, m.count, m.memory, p.protection.rung)
		wider.readAs(p)
		larger, err := wider.project(ctx)
		if err != nil {
			return nil, nil, err
		}
		if wider.judge(larger, size) != nil || exchange.Estimate(larger) > budget.limit {
			continue
		}
		if err := wider.certify(larger); err != nil {
			return nil, nil, err
		}
		if larger.Certificate.Lost() < projection.Certificate.Lost() {
			p, projection = wider, larger
		}
	}
	return p, projection, nil
}

// readAs reuses the messages that another planner has read of the same exchange.
func (p *planner) readAs(other *planner) {
	p.history.readings = other.history.readings
	p.history.memo = other.history.memo
	p.renderer.opening.known = other.renderer.opening.known
}

// raise moves the goal a share of the way to the largest prompt that an epoch may lead to.
func (b *budget) raise(share float64) {
	most := min(b.limit, b.now-b.worth)
	b.goal += int(share * float64(max(0, most-b.goal)))
	b.high = max(b.high, b.goal)
}

// reportCertificate reports how much of the content that must not be lost an epoch has kept.
func (e *epoch) reportCertificate(report func(kind, reason string, counts map[string]int)) {
	kept := e.projection.Certificate
	if kept == nil {
		return
	}
	reason := Complete
	if !kept.IsComplete() {
		reason = Incomplete
	}
	all, inPrompt := 0, 0
	for i := range kept {
		all, inPrompt = all+kept[i].All, inPrompt+kept[i].InPrompt
	}
	report(Certified, reason, map[string]int{"all": all, "in_prompt": inPrompt, "missing": kept.Lost()})
}

// The entry about a compaction's certificate in the report of an exchange.
const (
	Certified  = "certified" // the kind of the entry
	Complete   = "complete"
	Incomplete = "incomplete"
)

// epoch is a planned step to a new projection.
type epoch struct {
	projection session.Projection
	levels     [4]int // turns at each level
	compacted  int    // messages that differ from the client's
	original   int    // o200k tokens of the messages the projection covers
	rendered   int    // and of its parts
	before     int    // the model's tokens of the prompt as the client sent it
	reached    bool   // the prompt is under its target
	prediction prediction
	fits       bool // and at least under its limit
	rung       rung // the rules it lifted
	unsaid     int  // typed directives that don't fit the ledger

	dropped, droppedFrom, droppedTo int // messages shortened or dropped to fit the window, and their range in the archive
}

// newEpoch returns the epoch that makes a projection.
func newEpoch(exchange *pipeline.View, budget *budget, projection *session.Projection, reached bool) *epoch {
	e := &epoch{
		projection: *projection, levels: exchange.Levels(projection), reached: reached, fits: exchange.Estimate(projection) <= budget.limit,
		before: exchange.Original(),
	}
	for _, digest := range exchange.Conversation.Digests[:projection.Covers] {
		e.original += digest.Tokens
	}
	for _, part := range projection.Parts {
		e.rendered += part.Tokens
		if part.Raw != nil {
			e.compacted += part.To - part.From
		}
	}
	return e
}

// report reports a completed epoch.
func (e *epoch) report(draft *pipeline.Draft) {
	report := &draft.Report
	report.Compression = pipeline.Epoch
	report.Before, report.After, report.Limit = e.before, e.projection.After, draft.Limits.Limit
	report.Levels = e.levels
	report.Archived = e.compacted
	counts := map[string]int{
		"before": e.projection.Before, "after": e.projection.After, "compacted_count": e.compacted,
		"original_token_count": e.original, "summary_token_count": e.rendered,
		"archive_from": 0, "archive_to": e.projection.Covers,
		"predicted_net_microusd": int(e.prediction.net), "worst_net_microusd": int(e.prediction.worst), "rent_microusd": int(e.prediction.rent),
		"l0": e.levels[0], "l1": e.levels[1], "l2": e.levels[2], "l3": e.levels[3],
	}
	draft.Event("started", e.projection.Reason, map[string]int{"before": e.projection.Before})
	draft.Event("completed", e.projection.Reason, counts)
	e.reportCertificate(draft.Event)
	if e.rung > byTheRules {
		draft.Event("protection_lifted", e.rung.String(), nil)
	}
	if e.unsaid > 0 {
		draft.Event("directives_left_out", "", map[string]int{"count": e.unsaid})
	}
	if !e.reached {
		unreachable(draft, e.projection.After)
	}
	if e.dropped == 0 {
		return
	}
	draft.Event("truncated", "", map[string]int{
		"dropped": e.dropped, "archive_from": e.droppedFrom, "archive_to": e.droppedTo,
	})
	if e.fits {
		report.Compression = pipeline.Truncated
	}
}

// skip reports why there is no epoch.
func skip(draft *pipeline.Draft, reason string) { draft.Event("skipped", reason, nil) }
