package session

import (
	"time"

	"palimpsest/pipeline/conversation"
)

// Ahead is the input for planning a lane's next epoch before the cache of its last prompt expires.
type Ahead struct {
	SentAt  time.Time // when that prompt went out
	Due     time.Time // when to plan
	Outline []byte    // of its exchange, as encoded by the planner
}

// Plan is a projection that was planned before the request that may use it. It applies to a history that
// contains its projection's link, and only with the same settings.
type Plan struct {
	Projection Projection
	Settings   conversation.Hash // hash of all its inputs except the history
	Factor     float64           // the model's tokens per o200k token
}

// Plan returns the lane's plan, or nil.
func (p *progress) Plan() *Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan
}

// PlanAhead replaces the plan for the lane's next epoch. nil drops it.
func (p *progress) PlanAhead(plan *Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// PlanLater keeps the input of a plan for the lane's next recorded exchange. It replaces an earlier one.
func (p *progress) PlanLater(ahead Ahead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead = &ahead
}

// takeAhead returns the input that PlanLater kept, and removes it.
func (p *progress) takeAhead() *Ahead {
	p.mu.Lock()
	defer p.mu.Unlock()
	ahead := p.ahead
	p.ahead = nil
	return ahead
}

// TryLock takes the lane unless a request holds it.
func (l *Lane) TryLock() bool { return l.mu.TryLock() }
