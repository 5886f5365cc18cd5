package ipc

import (
	"context"

	"palimpsest/pipeline"
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
