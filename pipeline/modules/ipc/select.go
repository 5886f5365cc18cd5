package ipc

import (
	"context"
	"slices"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// atMostTimes bounds how far whole turns may exceed the size of the newest tokens to keep: a turn
// that would bring the tail above so many times that size is not kept.
const atMostTimes = 2

// The newest turns get newestShare of the changeable part that a compaction leaves. If they need more, older
// turns get at least olderShare in addition. Worth decides about the rest. In windows of 100,000 to 200,000
// behind a fixed part, these shares kept 87 % of the text that later edits replaced, and 0.65 and 0.175 kept
// 80 %.
const (
	newestShare = 0.55
	olderShare  = 0.4
)

// tails tries how many of the newest turns may stay as they are.
type tails struct {
	history   *history
	budget    *budget
	selection *selection
	renderer  *renderer
}

// search plans with the whole tail and, if that leaves the prompt closer to its target than to its
// goal, with ever shorter ones, and returns the projection of the best plan: the longest tail that
// frees enough, else the longest that brings the prompt under its target by the minimum of an
// epoch, else the longest that brings it under its target at all, else the shortest.
func (s *tails) search(ctx context.Context) (*session.Projection, error) {
	bounds := []int{(s.budget.goal + s.budget.high) / 2, s.budget.high - s.budget.worth, s.budget.high}
	steps := s.steps()
	last := len(steps) - 1
	var chosen tail
	isLast, best := true, len(bounds)
	for i, step := range steps {
		if err := s.selection.reset(); err != nil {
			return nil, err
		}
		tail, err := s.tail(step)
		if err != nil {
			return nil, err
		}
		if err := s.selection.raise(ctx, tail, tail.goal); err != nil {
			return nil, err
		}
		if i == last && best == len(bounds) {
			chosen = tail
		}
		for rank, bound := range bounds[:best] {
			if s.selection.total <= bound {
				chosen, isLast, best = tail, i == last, rank
				break
			}
		}
		if best == 0 {
			break
		}
	}
	projection, err := s.reach(ctx, chosen)
	if err != nil || isLast || s.history.exchange.Estimate(projection) <= s.budget.high {
		return projection, err
	}
	shortest, err := s.tail(steps[last])
	if err != nil {
		return nil, err
	}
	return s.reach(ctx, shortest) // the frames of records were too large
}

// reach renders the plan for a tail. The plan's size lacks the frames of records. If they make it
// miss its goal, reach lowers the goal by their size and tries again.
func (s *tails) reach(ctx context.Context, tail tail) (*session.Projection, error) {
	const attempts = 3
	if err := s.selection.reset(); err != nil {
		return nil, err
	}
	goal := tail.goal
	for attempt := 1; ; attempt++ {
		if err := s.selection.raise(ctx, tail, goal); err != nil {
			return nil, err
		}
		projection, err := s.renderer.render()
		if err != nil {
			return nil, err
		}
		exact := s.history.exchange.Estimate(projection)
		if exact <= tail.goal || s.selection.total > goal || attempt == attempts {
			return projection, nil
		}
		goal = s.selection.total - (exact - tail.goal)
	}
}

// goal returns the size to compress down to with a tail. If the tail takes nearly all room, the goal
// is higher, so that older turns keep their share, at most up to the size that ends the
// search. Turns that are in a record already aren't part of the tail.
func (s *tails) goal(tail tail) (int, error) {
	b, size := s.budget, 0
	for _, t := range s.history.turns[tail.first:] {
		switch {
		case t.floor > 1:
		case t.floor == 1, slices.Contains(tail.cut, t.index):
			short, err := s.selection.forms.size(t, 1)
			if err != nil {
				return 0, err
			}
			size += short
		default:
			size += t.original
		}
	}
	older := int(olderShare * float64(b.goal-b.fixed))
	return max(b.goal, min(b.fixed+size+older, (b.goal+b.high)/2)), nil
}

// step is how much of the conversation's end stays unchanged.
type step struct {
	turns  int
	newest float64 // o200k tokens
}

// steps are the tails to try, the longest first. The newest tokens are at most a share of
// the goal; they shrink with the number of turns, and the last step keeps one turn alone.
func (s *tails) steps() []step {
	whole := step{s.history.config.PreserveLastTurns, min(float64(s.history.config.PreserveTokens)/s.budget.rate, s.room())}
	steps := []step{whole}
	for _, turns := range s.history.config.KeepLastLadder {
		if turns < steps[len(steps)-1].turns && turns > 1 {
			steps = append(steps, step{turns, whole.newest * float64(turns) / float64(whole.turns)})
		}
	}
	return append(steps, step{turns: 1})
}

// room returns how many o200k tokens the tail may take. A compaction for the window divides only
// the part that can change.
func (s *tails) room() float64 {
	if byBreakEven(s.history.exchange) {
		return newestShareByCost * float64(s.budget.goal)
	}
	return newestShare * float64(s.budget.goal-s.budget.fixed)
}

// tail is the end of a conversation, which stays unchanged except for some turns in it.
type tail struct {
	first int   // index of the first turn
	whole int   // index of the first one that stays whole
	cut   []int // turns in it that may go to L1, the oldest last
	goal  int   // the size to compress down to with it
}

// tail returns the turns that stay unchanged: the step's number of turns, or those that hold its
// newest tokens, whichever is more. Beyond that number it cuts dispensable or very large results:
// those that belong to no file, and those that would fill half of the room alone.
func (s *tails) tail(kept step) (tail, error) {
	if err := s.selection.weighTurns(); err != nil {
		return tail{}, err
	}
	found, size, room := tail{first: len(s.history.turns), whole: len(s.history.turns)}, 0.0, s.room()
	for found.first > 0 {
		t, age := s.history.turns[found.first-1], len(s.history.turns)-found.first
		next, isCut := float64(t.original), false
		isHuge := next > room/2 && size+next > room
		if age >= kept.turns && t.deepest >= 1 && (isHuge || s.selection.isSpare[t.index]) {
			short, err := s.selection.forms.size(t, 1)
			if err != nil {
				return tail{}, err
			}
			isCut = short < t.original
			next = min(next, float64(short))
		}
		if age >= kept.turns && (size >= kept.newest || size+next > atMostTimes*kept.newest) {
			break
		}
		found.first--
		size += next
		if isCut {
			found.cut = append(found.cut, t.index)
		} else {
			found.whole = t.index
		}
	}
	goal, err := s.goal(found)
	found.goal = goal
	return found, err
}

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
