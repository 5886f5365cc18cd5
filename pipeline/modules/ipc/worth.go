package ipc

import (
	"cmp"
	"math"
	"slices"
)

// The worth of each token of a turn that a level removes, by its content. In recorded sessions,
// nearly all replaced text of edits came from a file's newest view or from the edit before it. A
// record names in few tokens the things that later turns use.
const (
	worthResult   = 1.0  // of a result, which L1 cuts
	worthView     = 3.0  // of the newest view of a file
	worthWork     = 2.0  // factor if the file is changed later
	worthCall     = 4.0  // of words and calls, which L2 leaves out
	worthChange   = 8.0  // of a call that changes a file
	worthRecorded = 16.0 // of a record, which L3 reduces to a line
)

// worth is the worth of a turn's tokens at levels 0, 1 and 2: those that the next level removes.
type worth [3]float64

// move takes a turn one level deeper.
type move struct {
	turn, level int
	worth       float64 // per token that it frees
}

// weighTurns computes the worth of each turn. It depends only on the originals of the request and
// the budget.
func (s *selection) weighTurns() error {
	if s.worths != nil {
		return nil
	}
	err := s.history.each(s.history.turns, func(t *turn) error {
		if err := s.history.read(t); err != nil {
			return err
		}
		t.calls()
		return nil
	})
	if err != nil {
		return err
	}
	s.isSpare = make([]bool, len(s.history.turns))
	s.worths = make([]worth, len(s.history.turns))
	later, age := newAfterwards(), 0
	for _, t := range slices.Backward(s.history.turns) {
		found := later.turn(t, age)
		s.worths[t.index] = found.worth(age, float64(max(1, s.room)))
		s.isSpare[t.index] = found.views+found.worked == 0
		age += t.original
	}
	return nil
}

// moves returns the possible moves of the turns before a tail and of those in it that go to L1, those
// with the least worth first. A turn goes down level by level.
func (s *selection) moves(tail tail) []move {
	var moves []move
	for _, t := range s.history.turns[:tail.first] {
		least := 0.0
		for level := t.level + 1; level <= t.deepest; level++ {
			least = max(least, s.worths[t.index][level-1])
			moves = append(moves, move{t.index, level, least})
		}
	}
	for _, index := range slices.Backward(tail.cut) {
		if s.history.turns[index].level == 0 {
			moves = append(moves, move{index, 1, s.worths[index][0]})
		}
	}
	slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(a.worth, b.worth) })
	return moves
}

// goDeeper returns which moves can be skipped because a later one surely takes the same turn
// deeper: those before the first that the prompt may not need even if turns had no tokens at L2.
func (s *selection) goDeeper(moves []move, goal int) []bool {
	least, sure := float64(s.total), 0
	size := make([]int, len(s.history.turns))
	for i := range size {
		size[i] = s.history.turns[i].original
	}
	for sure < len(moves) && least > float64(goal) {
		t, after := s.history.turns[moves[sure].turn], 0
		if moves[sure].level == 1 {
			after = min(size[t.index], s.forms.cuts.leastAt1(t.From, t.To))
		}
		least -= float64(size[t.index] - after)
		size[t.index] = after
		sure++
	}
	skipped := make([]bool, len(moves))
	deepest := map[int]bool{}
	for i := sure - 1; i >= 0; i-- {
		skipped[i] = deepest[moves[i].turn]
		deepest[moves[i].turn] = true
	}
	return skipped
}

// holding is the content of a turn that decides its worth.
type holding struct {
	tokens  int  // of the turn
	cut     int  // bytes of results that L1 would cut
	stale   int  // of them, results that a later message replaces
	views   int  // newest views of files
	worked  int  // newest views of files that are changed later
	changes bool // a call changes a file

	viewAge   int // tokens after the newest use of the files in view
	changeAge int // and of the files changed
}

// worth returns the worth of a turn with an age in tokens, in a conversation with so much room. A file
// is as old as its newest use.
func (h holding) worth(age int, room float64) worth {
	file := perToken(h.tokens)
	call := worthCall / older(age, room)
	if h.changes {
		call = worthChange * file / older(h.changeAge, room)
	}
	recorded := worthRecorded / older(age, room)
	if h.cut == 0 {
		return worth{call, call, recorded}
	}
	if float64(h.stale) >= staleShare*float64(h.cut) {
		return worth{0, call, recorded}
	}
	rest, views := h.cut-h.stale-h.views-h.worked, float64(h.views)+worthWork*float64(h.worked)
	result := (worthResult*float64(rest) + worthView*file*views) / float64(h.cut) / older(h.viewAge, room)
	return worth{result, call, recorded}
}

// older returns the divisor of worth at an age in tokens. The odds that something is needed again fall
// as a power of its age: Anderson and Schooler, "Reflections of the environment in memory",
// Psychological Science 2 (1991), 396–408.
func older(age int, room float64) float64 { return 1 + float64(age)/room }

// The turn whose content of files has the worth of the table above, and the smallest that counts, in
// o200k tokens.
const (
	usualTurn    = 1000
	smallestTurn = 25
)

// perToken returns the factor for content of files in a turn of so many tokens. An edit replaces a few
// lines, so each token of a large file is worth less.
func perToken(tokens int) float64 {
	return math.Sqrt(usualTurn / float64(max(smallestTurn, tokens)))
}
