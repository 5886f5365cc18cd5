package ipc

import (
	"palimpsest/pipeline/session"
)

// quarters is the number of steps in which folded turns are dropped.
const quarters = 4

// descent shortens a prompt further if levels are not enough: in chunks, and at last by leaving out
// turns.
type descent struct {
	history  *history
	budget   *budget
	forms    *forms
	lines    *lines
	renderer *renderer

	results map[int]bool // messages whose tool results lost their middle
}

// restart undoes all truncation.
func (d *descent) restart() {
	d.renderer.dropped = 0
	clear(d.results)
}

// descend shortens further if even the shortest tail leaves the prompt above its target, or so
// close to it that the epoch would free too little. It goes in chunks as long as that holds, and
// leaves content out if the prompt would not fit the window otherwise.
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

// better renders the plan again and returns the result, or the previous projection if the result is
// no smaller.
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

// cutGroups takes the tool results of the newest turn to L1, except those of its newest group:
// Responses may have a whole tool loop in one turn, whose calls depend on the reasoning at its
// beginning.
func (d *descent) cutGroups() (bool, error) {
	if len(d.history.turns) == 0 {
		return false, nil
	}
	t := d.history.turns[len(d.history.turns)-1]
	group, from, spared := d.history.newestGroup(t), t.From, t.spared
	if t.level > 0 {
		from = spared // an earlier epoch cut the messages before it
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

// truncate leaves out as little as needed to fit the window. It first drops the folded form of the
// oldest turns. If dropping all of it is not enough, it cuts the middle of tool results that no
// level touches instead, and only then both. It never cuts the message that a person typed last. If
// the prompt can't fit, the folded turns stay, because the provider's error comes back anyway.
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
		// Keep even a prompt that does not fit by our count, because the provider's may be lower.
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

// drop leaves out folded turns, the oldest first, until the prompt is under its target.
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

// left returns how many messages a truncation has shortened or dropped, and the range of the
// archive that holds them; to is excluded.
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
