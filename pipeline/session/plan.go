package session

import "palimpsest/pipeline/conversation"

// Plan is a projection that was planned ahead of the request that may use it. It
// is good for a history that its projection's link is part of, and for the
// settings it was planned with.
type Plan struct {
	Projection Projection
	Settings   conversation.Hash // of everything beside the history that it depends on
	Factor     float64           // the model's tokens per o200k token
}

// Plan returns what was planned ahead for the lane; nil: nothing.
func (l *Lane) Plan() *Plan {
	l.progress.Lock()
	defer l.progress.Unlock()
	return l.plan
}

// PlanAhead keeps a plan for the lane's next epoch in place of an earlier one; nil
// drops that.
func (l *Lane) PlanAhead(plan *Plan) {
	l.progress.Lock()
	defer l.progress.Unlock()
	l.plan = plan
}

// TryLock takes the lane unless a request holds it.
func (l *Lane) TryLock() bool { return l.mu.TryLock() }
