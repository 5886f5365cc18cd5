package ipc

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc/extract"
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

// The sizes, in o200k tokens, that a tool result is cut to so that the prompt fits the window: the
// first attempt, and the last if that is not enough.
const (
	smallestResult = 500
	leastResult    = 50
)

// oversized is a tool result of the tail.
type oversized struct {
	turn    *turn
	message int // index
	block   int
	size    int // o200k tokens
}

// cutMiddles cuts the middle of tool results that no level touches, the largest first and to no
// less than least tokens, so that the prompt loses excess tokens. It is for a prompt that would not
// fit the window otherwise. It never cuts text that a person typed.
func (d *descent) cutMiddles(excess, least int) error {
	results, err := d.oversized(least)
	if err != nil {
		return err
	}
	for _, result := range results {
		if excess <= 0 {
			break
		}
		if saved := d.truncateOne(result, excess, least); saved > 0 {
			excess -= saved
			d.results[result.message] = true
		}
	}
	return nil
}

// oversized returns the tool results that may be cut to least tokens, the largest first.
func (d *descent) oversized(least int) ([]oversized, error) {
	var results []oversized
	for _, t := range d.history.turns {
		from := t.From
		if t.level > 0 {
			from = t.spared
		}
		for i := from; i < t.To && t.level < 2; i++ {
			digest := d.history.digests[i]
			if !digest.Flags.Has(conversation.HasResult) || digest.Tokens <= 2*least {
				continue
			}
			if err := d.history.read(t); err != nil {
				return nil, err
			}
			if t.isFixed {
				break
			}
			for j := range t.messages[i-t.From].Blocks {
				block := &t.messages[i-t.From].Blocks[j]
				if block.Kind != conversation.ToolResult || len(block.Tools) > 0 {
					continue
				}
				if size := d.history.countText(block.Text); size > 2*least {
					results = append(results, oversized{t, i, j, size})
				}
			}
		}
	}
	slices.SortStableFunc(results, func(a, b oversized) int { return cmp.Compare(b.size, a.size) })
	return results, nil
}

// truncateOne cuts one tool result by up to excess tokens, to no less than least, and
// returns by how many.
func (d *descent) truncateOne(result oversized, excess, least int) int {
	t := result.turn
	at := result.message - t.From
	if t.level == 0 {
		t.forgetL1()
		t.shorter = make([]conversation.Message, len(t.messages))
		for i, message := range t.messages {
			part := d.history.untouched(t.From+i, t.From+i+1, 1)
			if t.isEvicted {
				part = d.forms.media.bare(t.From+i, message, part)
			}
			t.cut = append(t.cut, part)
			t.cutSize += d.history.weigh(part)
		}
	}
	keep := max(result.size-excess, least)
	message := t.messages[at]
	block := &message.Blocks[result.block]
	// Characters are not tokens: keep a tenth less than the average suggests.
	characters := utf8.RuneCountInString(block.Text) * keep / result.size * 9 / 10
	message.Replace(result.block, truncateResult(result.message, block, characters))
	part, err := d.history.encoded(result.message, message, d.history.count(message))
	if err != nil {
		return 0 // there is no shorter form
	}
	saved := d.history.weigh(t.cut[at]) - part.Tokens
	if saved <= 0 {
		return 0
	}
	t.reading, t.cut[at], t.level = t.with(at, message), part, 1
	t.cutSize -= saved
	return saved
}

// truncateResult returns the beginning and the end of a tool result, together so many characters,
// with a pointer to the rest.
func truncateResult(index int, block *conversation.Block, characters int) string {
	length := utf8.RuneCountInString(block.Text)
	head := extract.CutAt(block.Text, characters*2/3)
	tail := extract.CutFrom(block.Text, characters-characters*2/3)
	if tail <= head {
		return block.Text
	}
	missing := utf8.RuneCountInString(block.Text[head:tail])
	text := fmt.Sprintf("%s\n… [%s of %s characters archived as %s] …\n%s",
		block.Text[:head], extract.Thousands(missing), extract.Thousands(length), extract.Archived(index), block.Text[tail:])
	return extract.JoinNonEmpty("\n", text, describe(index, block.Media))
}
