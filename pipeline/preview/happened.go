package preview

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
)

// levels adds to recorded figures how many tokens were sent word for word and as an outline, and the deepest
// level. It returns false if a prompt's projection or messages are no longer stored.
func (p *Preview) levels(ctx context.Context, workspace tenants.WorkspaceID, lookup func(name string) tokens.Model, recorded []session.Recorded, was *Figures) (bool, error) {
	each := make([]Figures, len(recorded))
	var isLost atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range recorded {
		group.Go(func() error {
			one := &recorded[i]
			var projections []session.Projection
			if slices.ContainsFunc(one.Requests, func(sent session.Sent) bool { return sent.Projection > 0 }) {
				var err error
				if projections, err = p.store.Projections(ctx, workspace, one.Lane); err != nil {
					return fmt.Errorf("projections as sent: %w", err)
				}
			}
			if !addLevels(lookup(one.Model), one, projections, &each[i]) {
				isLost.Store(true)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil || isLost.Load() {
		return false, err
	}
	for _, one := range each {
		was.add(one)
	}
	return true, nil
}

// addLevels adds the levels of one conversation's prompts. It returns false if a part of them is no longer
// stored.
func addLevels(model tokens.Model, recorded *session.Recorded, projections []session.Projection, found *Figures) bool {
	digests := make([]conversation.Digest, len(recorded.Messages))
	for i, message := range recorded.Messages {
		digests[i].Tokens = message.Tokens
	}
	perToken := factor(recorded, digests, cmp.Or(model.TokensPerO200k, 1))
	for _, sent := range recorded.Requests {
		if sent.Projection == 0 {
			found.Verbatim += int64(sent.Before)
			continue
		}
		at := slices.IndexFunc(projections, func(one session.Projection) bool { return one.Number == sent.Projection })
		if at < 0 || sent.Position < 1 || sent.Position > len(digests) {
			return false
		}
		in := func(level int) int64 {
			return int64(perToken * float64(replaced(digests[:sent.Position], &projections[at], level)))
		}
		found.Verbatim += max(0, int64(sent.Before)-in(0))
		found.AtL3 += in(3)
		for _, part := range projections[at].Parts {
			found.Deepest = max(found.Deepest, part.Level)
		}
	}
	return true
}

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
