package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// happened adds what the prompts of a session contained as they were sent. It adds nothing if the
// projection of a prompt is no longer stored.
func (p *Preview) happened(ctx context.Context, workspace tenants.WorkspaceID, recorded *session.Recorded, messages talk, found *Identifiers) error {
	projections, err := p.store.Projections(ctx, workspace, recorded.Lane)
	if err != nil {
		return fmt.Errorf("projections as sent: %w", err)
	}
	inserts, err := p.store.Inserts(ctx, workspace, recorded.Lane)
	if err != nil {
		return fmt.Errorf("inserts as sent: %w", err)
	}
	l := laneOf(pipeline.Config{}, p.models.Lookup(recorded.Model), recorded, nil, messages)
	var figures Session
	for i := range recorded.Requests {
		sent := &recorded.Requests[i]
		if sent.Position < 1 || sent.Position > len(l.whole.Digests) {
			continue // its messages are no longer stored
		}
		standing := l.projection
		l.projection = nil
		if at := slices.IndexFunc(projections, func(one session.Projection) bool { return one.Number == sent.Projection }); at >= 0 {
			l.projection = &projections[at]
		} else if sent.Projection > 0 {
			return nil
		}
		if l.projection != standing {
			figures.Epochs++
		}
		exchange := l.exchange(sent)
		inPrompt := holds(exchange)
		has := func(name string) bool {
			return inPrompt(name) || slices.ContainsFunc(inserts, func(one session.Insert) bool {
				return one.Message < sent.Position && one.Stands(exchange.Lane.Projection) && strings.Contains(one.Text, name)
			})
		}
		l.needs(has, sent.Position, l.next(i), &figures)
	}
	found.Recorded, found.HeldThen, found.AgainThen = 1, figures.Held, figures.Again
	return nil
}
