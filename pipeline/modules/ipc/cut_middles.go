package ipc

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

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
	head := cutAt(block.Text, characters*2/3)
	tail := cutFrom(block.Text, characters-characters*2/3)
	if tail <= head {
		return block.Text
	}
	missing := utf8.RuneCountInString(block.Text[head:tail])
	text := fmt.Sprintf("%s\n… [%s of %s characters archived as %s] …\n%s",
		block.Text[:head], thousands(missing), thousands(length), archived(index), block.Text[tail:])
	return joinNonEmpty("\n", text, describe(index, block.Media))
}
