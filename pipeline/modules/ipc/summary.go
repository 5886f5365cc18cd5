package ipc

import (
	"context"
	"fmt"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc/extract"
)

// Notes returns the first messages of an exchange at L2 and L3, within so many o200k tokens: the
// oldest turns in lines for blocks of them, after the model's summary of the first ones, if there
// is one. Since it is text and not part of a prompt, the rules for legal prompts don't bind any
// turn.
func (m *Module) Notes(ctx context.Context, exchange *pipeline.View, messages, tokens int) (string, error) {
	whole := *exchange
	whole.Lane.Projection, whole.Lane.Order, whole.Lane.Pins = nil, nil, nil
	whole.Conversation = exchange.Conversation.First(messages)
	p := newPlanner(&whole, m.count, nil, 0, lastRung)
	p.forms.records.isAlone = true
	for _, t := range p.history.turns {
		t.verbatim, t.floor, t.deepest, t.level, t.isFixed = t.From, 0, 3, 2, false
	}
	summarized := p.standIn(&exchange.Lane)
	size := p.selection.summary.tokens()
	for _, t := range p.history.turns {
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		if err := p.forms.records.noteBand(t); err != nil {
			return "", err
		}
		if err := p.forms.records.weighRecord(t); err != nil {
			return "", err
		}
		if t.written == nil {
			size += t.record.size
		}
	}
	block := p.foldNotes(p.history.turns[summarized:], size, tokens)
	run := make([]*span, 0, len(p.history.turns))
	for _, t := range p.history.turns {
		run = append(run, t.span())
	}
	if len(run) == 0 {
		return "", nil
	}
	return p.renderer.recordText(run, block, false), nil
}

// standIn replaces the turns that the exchange's summary covers by the summary, and returns how
// many they are.
func (p *planner) standIn(lane *pipeline.Lane) (turns int) {
	summary := lane.Summary
	if summary == nil {
		return 0
	}
	for turns < len(p.history.turns) && p.history.turns[turns].To <= summary.Covers {
		turns++
	}
	if turns == 0 {
		return 0
	}
	p.selection.summary = &written{text: summary.Text, size: p.history.countText(summary.Text), at: p.history.turns[0].index}
	for _, t := range p.history.turns[:turns] {
		t.written, t.level = p.selection.summary, 3
	}
	return turns
}

// foldNotes takes blocks of turns to L3, the oldest first, until size is at most tokens, and
// enlarges the blocks if that is not enough. It returns how many turns a block has.
func (p *planner) foldNotes(turns []*turn, size, tokens int) (block int) {
	for len(turns) > 0 && size > tokens {
		var folded []*span
		firsts := p.selection.lines.firstsOf(blockTurns)
		first := firsts[turns[0].index]
		for len(turns) > 0 && firsts[turns[0].index] == first {
			turns[0].level = 3
			size -= turns[0].record.size
			folded, turns = append(folded, turns[0].span()), turns[1:]
		}
		size += p.selection.lines.blockLine(folded).size
	}
	if size <= tokens {
		return blockTurns
	}
	p.selection.lines.blockTokens = max(1, tokens-p.selection.summary.tokens())
	return p.selection.lines.blockSize(p.history.turns)
}

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
	w.text = fmt.Sprintf(summaryFrame, turnRange(first.index, last.index), extract.Archived(first.From), extract.Archived(covers-1), covers-first.From,
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
