package ipc

import (
	"context"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// selection is the planned level of each turn.
type selection struct {
	history *history
	forms   *forms
	lines   *lines
	opening *opening

	total   int            // size of the planned prompt without the frames of records
	sizes   map[int]lineOf // sizes of the L3 lines of each block of blockTurns, by its first turn
	outline int            // size of all L3 lines without typed messages
	tail    int            // turns before the tail
	room    int            // o200k tokens that a compaction leaves of the part that can change
	worths  []worth        // of the turns; nil until computed
	isSpare []bool         // turns without the newest view of a file
	summary *written       // the model's summary of the first turns; nil if absent
}

// reset puts every turn back to the level it has in the current projection.
func (s *selection) reset() error {
	s.total = s.history.exchange.Limits.Fixed + s.summary.tokens() + s.history.added[session.InSystem]
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
	s.sizes, s.outline = map[int]lineOf{}, 0
	for i, first := range s.lines.firstsOf(blockTurns) {
		if i != first {
			continue
		}
		if err := s.weighLine(first); err != nil {
			return err
		}
	}
	return nil
}

// raise compresses turns before the tail and dispensable turns in it, those with the least worth per
// token first, until the prompt has at most goal tokens.
func (s *selection) raise(ctx context.Context, tail tail, goal int) error {
	s.tail = tail.first
	if s.total <= goal {
		return nil
	}
	if err := s.weighTurns(); err != nil {
		return err
	}
	moves := s.moves(tail)
	skipped := s.goDeeper(moves, goal)
	for i, move := range moves {
		if s.total <= goal {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if skipped[i] {
			continue
		}
		if move.level == 1 {
			if err := s.cutAhead(moves[i:], skipped[i:]); err != nil {
				return err
			}
		}
		if err := s.raiseTurn(s.history.turns[move.turn], move.level); err != nil {
			return err
		}
	}
	return nil
}

// cutTogether is how many turns are shortened for L1 at once, a few more than it may take.
const cutTogether = 32

// cutAhead shortens for L1 the turn of the first move and of some that follow it.
func (s *selection) cutAhead(moves []move, skipped []bool) error {
	if s.history.turns[moves[0].turn].shorter != nil {
		return nil
	}
	var next []*turn
	for i := 0; i < len(moves) && len(next) < cutTogether; i++ {
		if moves[i].level == 1 && !skipped[i] {
			next = append(next, s.history.turns[moves[i].turn])
		}
	}
	return s.history.each(next, s.forms.cuts.cutAhead)
}

// raiseTurn takes a turn to a level if it may go there and L1 makes it smaller. At L2 a small turn
// may grow by a few tokens, because as a separate turn between two records it would cost a frame.
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
	if level >= 2 {
		if err := s.weighLedger(); err != nil {
			return err
		}
	}
	if level == 3 {
		return s.weighLine(s.lines.firstsOf(blockTurns)[t.index])
	}
	return nil
}

// weighLedger counts the ledger of the turns before the tail, once it exists.
func (s *selection) weighLedger() error {
	if _, known := s.sizes[ledgerLine]; known {
		return nil
	}
	block, err := s.opening.block(s.history.turns[:s.tail], 0)
	s.sizes[ledgerLine] = lineOf{size: block.size}
	s.total += block.size
	return err
}

// weighLine counts the L3 lines of the block that begins with a turn again. The renderer makes blocks
// larger until all lines fit their bound, so more than that doesn't count.
func (s *selection) weighLine(block int) error {
	firsts, end := s.lines.firstsOf(blockTurns), block
	for end < len(firsts) && firsts[end] == block {
		end++
	}
	turns := s.history.turns[block:end]
	for _, t := range turns {
		if t.level < 3 || t.written != nil {
			continue
		}
		if err := s.forms.records.note(t); err != nil {
			return err
		}
	}
	var now lineOf
	for _, line := range s.lines.foldedLines(turns, blockTurns) {
		now.size, now.typed = now.size+line.size, now.typed+line.typed
	}
	before, outline := s.sizes[block], s.outline
	s.outline += now.size - now.typed - (before.size - before.typed)
	s.total += now.typed - before.typed + min(s.outline, s.lines.blockTokens) - min(outline, s.lines.blockTokens)
	s.sizes[block] = now
	return nil
}
