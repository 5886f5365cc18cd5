package ipc

import (
	"context"

	"palimpsest/pipeline/session"
)

// atMostTimes bounds what is kept for the sake of the newest tokens, of which only
// whole turns can be kept: a turn that makes it more than so many times as much is
// not.
const atMostTimes = 2

// search plans with the whole tail and, where that leaves the prompt closer to
// its target than to its goal, with ever shorter ones, and returns the projection
// of the best plan: the longest tail that makes room enough, else the longest
// that brings the prompt under its target by what an epoch must free, else the
// longest that brings it under its target at all, else the shortest.
func (p *planner) search(ctx context.Context) (*session.Projection, error) {
	bounds := []int{(p.goal + p.high) / 2, p.high - p.worth(), p.high}
	steps := p.steps()
	chosen := len(steps) - 1
	best := len(bounds)
	for i, step := range steps {
		if err := p.reset(); err != nil {
			return nil, err
		}
		if err := p.raise(ctx, p.tail(step), p.goal); err != nil {
			return nil, err
		}
		for rank, bound := range bounds[:best] {
			if p.total <= bound {
				chosen, best = i, rank
				break
			}
		}
		if best == 0 {
			break
		}
	}
	projection, err := p.reach(ctx, p.tail(steps[chosen]))
	last := len(steps) - 1
	if err != nil || chosen == last || p.exchange.Estimate(projection) <= p.high {
		return projection, err
	}
	return p.reach(ctx, p.tail(steps[last])) // the frames of records were too much
}

// step is how much of the conversation's end stays as it is.
type step struct {
	turns  int
	newest float64 // o200k tokens
}

// steps are the tails to try, the longest first. In a small window the newest
// tokens are at most half of the goal; they shrink with the number of turns, and
// the last step keeps one turn alone.
func (p *planner) steps() []step {
	whole := step{p.config.PreserveLastTurns, min(float64(p.config.PreserveTokens)/p.rate, float64(p.goal)/2)}
	steps := []step{whole}
	for _, turns := range p.config.KeepLastLadder {
		if turns < steps[len(steps)-1].turns && turns > 1 {
			steps = append(steps, step{turns, whole.newest * float64(turns) / float64(whole.turns)})
		}
	}
	return append(steps, step{turns: 1})
}

// tail returns the index of the first of the newest turns that stay as they are:
// the step's number of turns, or those that hold its newest tokens, whichever is
// more.
func (p *planner) tail(s step) int {
	first, size := len(p.turns), 0.0
	for first > 0 {
		next := float64(p.turns[first-1].original)
		if len(p.turns)-first >= s.turns && (size >= s.newest || size+next > atMostTimes*s.newest) {
			break
		}
		first--
		size += next
	}
	return first
}

// reach renders the plan for a tail. The frames of records are not in the plan's
// size: where they make it miss its goal it goes on by what they take.
func (p *planner) reach(ctx context.Context, tail int) (*session.Projection, error) {
	const attempts = 3
	if err := p.reset(); err != nil {
		return nil, err
	}
	goal := p.goal
	for attempt := 1; ; attempt++ {
		if err := p.raise(ctx, tail, goal); err != nil {
			return nil, err
		}
		projection, err := p.render()
		if err != nil {
			return nil, err
		}
		exact := p.exchange.Estimate(projection)
		if exact <= p.goal || p.total > goal || attempt == attempts {
			return projection, nil
		}
		goal = p.total - (exact - p.goal)
	}
}

// worth returns how many o200k tokens an epoch must free.
func (p *planner) worth() int {
	if p.exchange.Order != nil {
		return 1
	}
	whole := p.limit
	if byBreakEven(p.exchange) {
		whole = min(whole, p.now)
	}
	return int(p.config.MinClear * float64(whole))
}
