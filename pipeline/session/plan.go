package session

import (
	"time"

	"palimpsest/pipeline/conversation"
)

// Ahead is what an epoch of a lane can be planned from once the cache of its last
// prompt is about to go cold.
type Ahead struct {
	SentAt  time.Time // when that prompt went out
	Due     time.Time // when to plan
	Outline []byte    // of its exchange, as the one who plans wrote it
}

// Plan is a projection that was planned ahead of the request that may use it. It
// is good for a history that its projection's link is part of, and for the
// settings it was planned with.
type Plan struct {
	Projection Projection
	Settings   conversation.Hash // of everything beside the history that it depends on
	Factor     float64           // the model's tokens per o200k token
}

// Plan returns what was planned ahead for the lane; nil if nothing.
func (p *progress) Plan() *Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan
}

// PlanAhead keeps a plan for the lane's next epoch in place of an earlier one; nil
// drops that.
func (p *progress) PlanAhead(plan *Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// PlanLater keeps what an epoch can be planned from for the next exchange of the lane
// that is recorded, in place of what was kept before.
func (p *progress) PlanLater(ahead Ahead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead = &ahead
}

// takeAhead returns what PlanLater kept, once.
func (p *progress) takeAhead() *Ahead {
	p.mu.Lock()
	defer p.mu.Unlock()
	ahead := p.ahead
	p.ahead = nil
	return ahead
}

// TryLock takes the lane unless a request holds it.
func (l *Lane) TryLock() bool { return l.mu.TryLock() }
