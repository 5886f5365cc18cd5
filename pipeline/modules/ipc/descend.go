package ipc

import (
	"palimpsest/pipeline/session"
)

// quarters are the steps in which what was folded is dropped.
const quarters = 4

// descent goes on where levels are not enough: in chunks, and at last by leaving out.
type descent struct {
	history  *history
	budget   *budget
	forms    *forms
	lines    *lines
	renderer *renderer

	results map[int]bool // messages with tool results that were cut in their middle
}

// restart forgets what was left out.
func (d *descent) restart() {
	d.renderer.dropped = 0
	clear(d.results)
}

// descend goes on where even the shortest tail leaves the prompt above its target,
// or so close to it that the epoch would free too little: in chunks, as long as
// that is so, and where the prompt would not fit the window at all by leaving
// things out.
func (d *descent) descend(projection *session.Projection) (*session.Projection, error) {
	enough := max(d.budget.goal, d.budget.high-d.budget.worth)
	if d.history.exchange.Estimate(projection) <= enough {
		return projection, nil
	}
	changed, err := d.cutGroups()
	if err != nil {
		return nil, err
	}
	if changed {
		if projection, err = d.better(projection); err != nil {
			return nil, err
		}
	}
	for d.history.exchange.Estimate(projection) > enough && d.lines.coarsen() {
		if projection, err = d.better(projection); err != nil {
			return nil, err
		}
	}
	if d.history.exchange.Estimate(projection) <= d.budget.limit {
		return projection, nil
	}
	return d.truncate(projection)
}

// better renders the plan again and returns that or, where it is no smaller, the
// projection that there was.
func (d *descent) better(before *session.Projection) (*session.Projection, error) {
	projection, err := d.renderer.render()
	if err != nil {
		return nil, err
	}
	if d.history.exchange.Estimate(projection) >= d.history.exchange.Estimate(before) {
		return before, nil
	}
	return projection, nil
}

// cutGroups takes the tool results of the newest turn to L1, but for those of its
// newest group: Responses may have a whole tool loop in one turn, whose calls
// depend on the reasoning that it opens with.
func (d *descent) cutGroups() (bool, error) {
	if len(d.history.turns) == 0 {
		return false, nil
	}
	t := d.history.turns[len(d.history.turns)-1]
	group, from, spared := d.history.newestGroup(t), t.From, t.spared
	if t.level > 0 {
		from = spared // what stands before it was cut by an earlier epoch
	}
	if t.level > 1 || t.deepest < 1 || !d.history.hasResult(from, group) {
		return false, nil
	}
	before, err := d.forms.size(t, t.level)
	if err != nil || t.deepest < 1 {
		return false, err
	}
	t.spared = group
	t.forgetL1()
	if err := d.forms.cuts.cutDown(t); err != nil {
		return false, err
	}
	if t.cutSize >= before {
		t.spared = spared
		t.forgetL1()
		return false, nil
	}
	t.level = 1
	return true, nil
}

// truncate leaves out what it takes to fit the window: as little as possible of
// what the oldest turns were folded to; where all of it is not enough, the middle
// of tool results that no level touches, and only then both. What a person typed
// last is never cut. Where nothing makes the prompt fit, what was folded stays:
// the provider's error comes back whatever is left out.
func (d *descent) truncate(projection *session.Projection) (*session.Projection, error) {
	dropped, err := d.drop(projection)
	if err != nil || d.history.exchange.Estimate(dropped) <= d.budget.high {
		return dropped, err
	}
	d.renderer.dropped = 0
	for least := min(smallestResult, max(leastResult, d.budget.limit/10)); least >= leastResult; least /= 2 {
		if err := d.cutMiddles(d.history.exchange.Estimate(projection)-d.budget.high, least); err != nil {
			return nil, err
		}
		// Even where it does not fit by our count, the provider's may be kinder.
		if projection, err = d.better(projection); err != nil || d.history.exchange.Estimate(projection) <= d.budget.limit {
			return projection, err
		}
	}
	if dropped, err = d.drop(projection); err != nil || d.history.exchange.Estimate(dropped) <= d.budget.limit {
		return dropped, err
	}
	d.renderer.dropped = 0
	return projection, nil
}

// drop leaves out what was folded, the oldest first, until the prompt is under its
// target.
func (d *descent) drop(projection *session.Projection) (*session.Projection, error) {
	var folded []int
	for i, t := range d.history.turns {
		if t.level >= 2 {
			folded = append(folded, i)
		}
	}
	for quarter := 1; quarter <= quarters && len(folded) > 0; quarter++ {
		d.renderer.dropped = folded[(len(folded)*quarter+quarters-1)/quarters-1] + 1
		var err error
		if projection, err = d.better(projection); err != nil || d.history.exchange.Estimate(projection) <= d.budget.high {
			return projection, err
		}
	}
	return projection, nil
}

// left returns how many messages a truncation has left something out of, and the
// range of the archive that holds them; to is excluded.
func (d *descent) left() (messages, from, to int) {
	from = len(d.history.digests)
	add := func(first, end int) {
		messages += end - first
		from, to = min(from, first), max(to, end)
	}
	for _, t := range d.history.turns[:d.renderer.dropped] {
		if t.level >= 2 && t.verbatim < t.To {
			add(t.verbatim, t.To)
		}
	}
	for i := range d.results {
		add(i, i+1)
	}
	return messages, min(from, to), to
}
