package ipc

import (
	"fmt"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// leastBlockTokens is how far the bound of all L3 text may shrink, in o200k tokens;
// further in a window of which it would be a large part.
const leastBlockTokens = 500

// quarters are the steps in which what was folded is dropped.
const quarters = 4

// truncation is what a plan leaves out of a prompt that no level makes fit.
type truncation struct {
	turns   int          // the first turns of the lane, of which nothing folded is left
	results map[int]bool // messages with tool results that were cut in their middle
}

func newTruncation() truncation { return truncation{results: map[int]bool{}} }

// descend goes on where even the shortest tail leaves the prompt above its target,
// or so close to it that the epoch would free too little: in chunks, as long as
// that is so, and where the prompt would not fit the window at all by leaving
// things out.
func (p *planner) descend(projection *session.Projection) (*session.Projection, error) {
	enough := max(p.goal, p.high-p.worth())
	if p.exchange.Estimate(projection) <= enough {
		return projection, nil
	}
	changed, err := p.cutGroups()
	if err != nil {
		return nil, err
	}
	if changed {
		if projection, err = p.better(projection); err != nil {
			return nil, err
		}
	}
	for p.exchange.Estimate(projection) > enough && p.coarsen() {
		if projection, err = p.better(projection); err != nil {
			return nil, err
		}
	}
	if p.exchange.Estimate(projection) <= p.limit {
		return projection, nil
	}
	return p.truncate(projection)
}

// better renders the plan again and returns that or, where it is no smaller, the
// projection that there was.
func (p *planner) better(before *session.Projection) (*session.Projection, error) {
	projection, err := p.render()
	if err != nil {
		return nil, err
	}
	if p.exchange.Estimate(projection) >= p.exchange.Estimate(before) {
		return before, nil
	}
	return projection, nil
}

// cutGroups takes the tool results of the newest turn to L1, but for those of its
// newest group: Responses may have a whole tool loop in one turn, whose calls
// depend on the reasoning that it opens with.
func (p *planner) cutGroups() (bool, error) {
	if len(p.turns) == 0 {
		return false, nil
	}
	t := p.turns[len(p.turns)-1]
	group, from, spared := p.newestGroup(t), t.From, t.spared
	if t.level > 0 {
		from = spared // what stands before it was cut by an earlier epoch
	}
	if t.level > 1 || t.deepest < 1 || !p.hasResult(from, group) {
		return false, nil
	}
	before, err := p.size(t, t.level)
	if err != nil || t.deepest < 1 {
		return false, err
	}
	t.spared = group
	t.forgetL1()
	if err := p.cutDown(t); err != nil {
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

// olderGroups returns the size of what cutGroups may cut.
func (p *planner) olderGroups() int {
	if len(p.turns) == 0 {
		return 0
	}
	t, size := p.turns[len(p.turns)-1], 0
	if t.deepest < 1 {
		return 0
	}
	from := max(t.From, p.covered()) // what stands before it is counted with the projection
	for _, digest := range p.exchange.Digests[from:max(from, p.newestGroup(t))] {
		if digest.Flags.Has(conversation.HasResult) {
			size += digest.Tokens
		}
	}
	return size
}

// newestGroup returns the index of the first message of a turn's newest calls with
// their results.
func (p *planner) newestGroup(t *turn) int {
	digests, start := p.exchange.Digests, t.To
	for start > t.From && digests[start-1].Role != conversation.Assistant {
		start--
	}
	for start > t.From && digests[start-1].Role == conversation.Assistant {
		start--
	}
	return start
}

func (p *planner) hasResult(from, to int) bool {
	for _, digest := range p.exchange.Digests[from:max(from, to)] {
		if digest.Flags.Has(conversation.HasResult) {
			return true
		}
	}
	return false
}

// coarsen halves the bound of all L3 text and reports whether that may make the
// plan smaller.
func (p *planner) coarsen() bool {
	least := min(leastBlockTokens, max(100, p.limit/16))
	if p.blockTokens/2 < least {
		return false
	}
	for _, t := range p.turns {
		if t.level == 3 {
			p.blockTokens /= 2
			return true
		}
	}
	return false
}

// truncate leaves out what it takes to fit the window: as little as possible of
// what the oldest turns were folded to; where all of it is not enough, the middle
// of tool results that no level touches, and only then both. What a person typed
// last is never cut. Where nothing makes the prompt fit, what was folded stays:
// the provider's error comes back whatever is left out.
func (p *planner) truncate(projection *session.Projection) (*session.Projection, error) {
	dropped, err := p.drop(projection)
	if err != nil || p.exchange.Estimate(dropped) <= p.high {
		return dropped, err
	}
	p.truncation.turns = 0
	for least := min(smallestResult, max(leastResult, p.limit/10)); least >= leastResult; least /= 2 {
		if err := p.cutMiddles(p.exchange.Estimate(projection)-p.high, least); err != nil {
			return nil, err
		}
		// Even where it does not fit by our count, the provider's may be kinder.
		if projection, err = p.better(projection); err != nil || p.exchange.Estimate(projection) <= p.limit {
			return projection, err
		}
	}
	if dropped, err = p.drop(projection); err != nil || p.exchange.Estimate(dropped) <= p.limit {
		return dropped, err
	}
	p.truncation.turns = 0
	return projection, nil
}

// drop leaves out what was folded, the oldest first, until the prompt is under its
// target.
func (p *planner) drop(projection *session.Projection) (*session.Projection, error) {
	var folded []int
	for i, t := range p.turns {
		if t.level >= 2 {
			folded = append(folded, i)
		}
	}
	for quarter := 1; quarter <= quarters && len(folded) > 0; quarter++ {
		p.truncation.turns = folded[(len(folded)*quarter+quarters-1)/quarters-1] + 1
		var err error
		if projection, err = p.better(projection); err != nil || p.exchange.Estimate(projection) <= p.high {
			return projection, err
		}
	}
	return projection, nil
}

// recorded returns the text that stands for a run, with one line in place of the
// turns that were dropped.
func (p *planner) recorded(run []*span, block int, answers bool) string {
	n := 0
	for n < len(run) && run[n].turn < p.truncation.turns {
		n++
	}
	switch n {
	case 0:
		return p.recordText(run, block, answers)
	case len(run):
		return droppedLine(run)
	}
	return droppedLine(run[:n]) + "\n" + p.recordText(run[n:], block, answers)
}

// droppedLine names what was dropped of adjacent spans, where it is, and what a
// person asked for first in them.
func droppedLine(spans []*span) string {
	first, last := spans[0], spans[len(spans)-1]
	line := fmt.Sprintf("[%s left out: %s messages, archived as %s to %s]",
		turnRange(first.turn, last.turn), thousands(last.To-first.From), archived(first.From), archived(last.To-1))
	for _, span := range spans {
		if span.record.asked != "" {
			return line + " The user asked first: " + span.record.asked
		}
	}
	return line
}

// left returns how many messages a truncation has left something out of, and the
// range of the archive that holds them; to is excluded.
func (p *planner) left() (messages, from, to int) {
	from = len(p.exchange.Digests)
	add := func(first, end int) {
		messages += end - first
		from, to = min(from, first), max(to, end)
	}
	for _, t := range p.turns[:p.truncation.turns] {
		if t.level >= 2 && t.verbatim < t.To {
			add(t.verbatim, t.To)
		}
	}
	for i := range p.truncation.results {
		add(i, i+1)
	}
	return messages, min(from, to), to
}
