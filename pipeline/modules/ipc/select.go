package ipc

import (
	"context"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// selection is the level that each turn is to have.
type selection struct {
	history *history
	forms   *forms
	lines   *lines
	opening *opening

	total   int         // size of the prompt as planned, but for the frames of records
	sizes   map[int]int // size of the L3 line of each block of blockTurns
	stale   []bool      // turns whose results say nothing any more; nil: not looked for yet
	summary *written    // what a model wrote in place of the first turns; nil if none
}

// reset puts every turn back to the level it has in the current projection.
func (s *selection) reset() error {
	s.total = s.history.exchange.Fixed + s.summary.tokens() + s.history.added[session.InSystem]
	for _, digest := range s.history.digests[:conversation.Lead(s.history.digests)] {
		s.total += digest.Tokens
	}
	for _, t := range s.history.turns {
		t.level = t.floor
		size, err := s.forms.size(t, t.level)
		if err != nil {
			return err
		}
		s.total += size
	}
	s.sizes = map[int]int{}
	for block := 0; block*blockTurns < len(s.history.turns); block++ {
		if err := s.weighLine(block); err != nil {
			return err
		}
	}
	return nil
}

// raise compresses turns before the tail, the oldest first, one level after the
// other, until the prompt has at most goal tokens.
func (s *selection) raise(ctx context.Context, tail, goal int) error {
	if err := s.raiseDeep(ctx, tail, goal); err != nil {
		return err
	}
	if err := s.raiseStale(ctx, tail, goal); err != nil {
		return err
	}
	if err := s.raiseTo(ctx, 1, tail, goal); err != nil {
		return err
	}
	if s.history.config.DeepestLevel >= 2 {
		if err := s.raiseTo(ctx, 2, tail, goal); err != nil {
			return err
		}
	}
	if s.history.config.DeepestLevel < 3 {
		return nil
	}
	for block := 0; block*blockTurns < tail && s.total > goal; block++ {
		if err := s.foldBlock(block, tail); err != nil {
			return err
		}
	}
	return nil
}

// raiseDeep takes all turns before end down to L2 at once where the prompt surely has
// more than goal tokens with all of them at L1, and at L2 as well: where every turn
// goes deeper nobody needs to know what it would have at L1.
func (s *selection) raiseDeep(ctx context.Context, end, goal int) error {
	if s.history.config.DeepestLevel < 3 || s.total <= goal {
		return nil
	}
	least := s.total
	for _, t := range s.history.turns[:end] {
		if t.level == 0 && t.deepest > 0 {
			least -= t.original - s.forms.cuts.leastAt1(t.From, t.To)
		}
	}
	if least <= goal {
		return nil
	}
	least = s.total
	for _, t := range s.history.turns[:end] {
		switch {
		case t.level >= 2 || t.deepest == 0:
		case t.deepest >= 2:
			before, err := s.forms.size(t, t.level)
			if err != nil {
				return err
			}
			after, err := s.forms.size(t, 2)
			if err != nil {
				return err
			}
			least -= before - after
		case t.level == 0:
			least -= t.original - s.forms.cuts.leastAt1(t.From, t.To)
		}
	}
	if least <= goal {
		return nil
	}
	return s.raiseTo(ctx, 2, end, goal)
}

// cutTogether is how many turns are shortened for L1 at once, a few more than it may take.
const cutTogether = 32

// raiseTo takes turns before end to a level, the oldest first, until the prompt has
// at most goal tokens.
func (s *selection) raiseTo(ctx context.Context, level, end, goal int) error {
	for i, t := range s.history.turns[:end] {
		if s.total <= goal {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if level == 1 && i%cutTogether == 0 {
			if err := s.history.each(s.history.turns[i:min(i+cutTogether, end)], s.forms.cuts.cutAhead); err != nil {
				return err
			}
		}
		if err := s.raiseTurn(t, level); err != nil {
			return err
		}
	}
	return nil
}

// raiseTurn takes a turn to a level if it may go there and L1 makes it smaller.
// At L2 a small turn may grow by a few tokens: on its own between two records it
// would cost a frame.
func (s *selection) raiseTurn(t *turn, level int) error {
	if t.level >= level || t.deepest < level {
		return nil
	}
	if err := s.history.read(t); err != nil {
		return err
	}
	if t.deepest < level {
		return nil
	}
	before, err := s.forms.size(t, t.level)
	if err != nil {
		return err
	}
	after, err := s.forms.size(t, level)
	if err != nil {
		return err
	}
	if level == 1 && after >= before {
		return nil
	}
	t.level = level
	s.total += after - before
	return nil
}

// foldBlock takes the turns of a block to L3.
func (s *selection) foldBlock(block, tail int) error {
	for _, t := range s.history.turns[block*blockTurns : min((block+1)*blockTurns, tail)] {
		if err := s.raiseTurn(t, 3); err != nil {
			return err
		}
	}
	return s.weighLine(block)
}

// weighLine counts the L3 line of a block again.
func (s *selection) weighLine(block int) error {
	var folded []*span
	for _, t := range s.history.turns[block*blockTurns : min((block+1)*blockTurns, len(s.history.turns))] {
		if t.level < 3 || t.written != nil {
			continue
		}
		if err := s.forms.records.note(t); err != nil {
			return err
		}
		folded = append(folded, t.span())
	}
	size := 0
	if len(folded) > 0 {
		size = s.lines.blockLine(folded).size
		if s.sizes[ledgerLine] == 0 {
			s.sizes[ledgerLine] = s.opening.ledgerBudget()
			s.total += s.sizes[ledgerLine]
		}
	}
	s.total += size - s.sizes[block]
	s.sizes[block] = size
	return nil
}
