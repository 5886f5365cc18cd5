package ipc

import (
	"context"

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
