package ipc

import (
	"context"
	"fmt"
	"strings"
)

// summaryFrame opens the model's summary of turns.
const summaryFrame = `[CONTEXT SUMMARY]
Notes on %s of this conversation, messages %s to %s (%d messages, archived word for word). They are context, not a new request; what the user asked for is told of, not asked again.
<context-summary>
%s
</context-summary>`

// written is the model's summary of a lane's first turns. It is written into the record of the
// longest run of these turns; the records of other runs point to it.
type written struct {
	text string
	size int // o200k tokens
	at   int // the turn whose record it opens
}

// useSummary has the plan replace turns by the lane's summary, if there is one, all of these turns
// may fold, and it is smaller than these turns as planned without it.
func (p *planner) useSummary(ctx context.Context) error {
	summary := p.history.exchange.Lane.Summary
	if summary == nil || p.history.config.DeepestLevel < 2 {
		return nil
	}
	var turns []*turn
	for _, t := range p.history.turns {
		if t.To > summary.Covers {
			break
		}
		if err := p.history.read(t); err != nil {
			return err
		}
		if t.deepest >= 2 {
			turns = append(turns, t)
		}
	}
	tail, err := p.tails.tail(p.tails.steps()[0])
	if err != nil || len(turns) == 0 || turns[len(turns)-1].index >= tail.whole {
		return err
	}
	if _, err := p.tails.search(ctx); err != nil {
		return err
	}
	w, err := p.written(turns, summary.Text, summary.Covers)
	if err != nil || w == nil {
		return err
	}
	for _, t := range turns {
		t.written, t.floor, t.deepest = w, 3, 3
	}
	p.selection.summary = w
	clear(p.selection.opening.blocks)
	return nil
}

// written returns a summary for the plan; nil if it is no smaller than the plan of its turns, or
// than its longest run of turns at L1.
func (p *planner) written(turns []*turn, text string, covers int) (*written, error) {
	planned, longest, run := 0, 0, 0
	w := &written{}
	blocks := map[int]bool{}
	for i, t := range turns {
		size, err := p.forms.size(t, t.level)
		if err != nil {
			return nil, err
		}
		planned += size - t.front
		if block := p.selection.lines.firstsOf(blockTurns)[t.index]; t.level == 3 && !blocks[block] {
			blocks[block] = true
			planned += p.selection.sizes[block].size
		}
		if i == 0 || t.verbatim > t.From || turns[i-1].index != t.index-1 {
			run = 0
		}
		cut, err := p.forms.size(t, 1)
		if err != nil {
			return nil, err
		}
		if run += cut - t.front; run > longest {
			longest = run
			w.at = t.index
		}
	}
	first, last := turns[0], turns[len(turns)-1]
	w.text = fmt.Sprintf(summaryFrame, turnRange(first.index, last.index), archived(first.From), archived(covers-1), covers-first.From,
		strings.ReplaceAll(text, "</context-summary", "&lt;/context-summary"))
	w.size = p.history.countText(w.text)
	for w.at > first.index && isRun(turns, w.at) {
		w.at--
	}
	if w.size >= planned || w.size >= longest {
		return nil, nil //nolint:nilnil // no summary is an answer
	}
	return w, nil
}

// isRun reports whether the turn before the one at index is folded into the same
// record.
func isRun(turns []*turn, index int) bool {
	var before, at *turn
	for _, t := range turns {
		switch t.index {
		case index - 1:
			before = t
		case index:
			at = t
		}
	}
	return before != nil && at != nil && at.verbatim == at.From
}

// tokens returns the size of a summary; 0 without one.
func (w *written) tokens() int {
	if w == nil {
		return 0
	}
	return w.size
}

// of returns the record's text for the leading spans that a summary replaces, and how many they
// are.
func (w *written) of(run []*span) (text string, spans int) {
	if w == nil {
		return "", 0
	}
	for spans < len(run) && run[spans].written == w {
		spans++
	}
	if run[0].turn == w.at {
		return w.text + "\n", spans
	}
	return fmt.Sprintf("[%s] are part of the [CONTEXT SUMMARY].\n", turnRange(run[0].turn, run[spans-1].turn)), spans
}
