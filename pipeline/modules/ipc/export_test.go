package ipc

import (
	"context"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// Completed plans an epoch of a prompt of size tokens, has damage lose something of its
// projection, and returns what completing that comes to.
func (m *Module) Completed(ctx context.Context, exchange *pipeline.View, size int, damage func(*session.Projection)) (before, after *session.Projection, err error) {
	p := newPlanner(exchange, m.count, m.memory, size, byTheRules)
	planned, err := p.project(ctx)
	if err != nil {
		return nil, nil, err
	}
	damaged := *planned
	damaged.Parts = append([]session.Part{}, planned.Parts...)
	damage(&damaged)
	_, after, err = m.complete(ctx, p, &damaged, size)
	return &damaged, after, err
}
