package ipc

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// S33: no test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manyTurns are more than one core takes at a time, and no whole number of portions.
func manyTurns() []*turn {
	turns := make([]*turn, runTurns*max(runtime.GOMAXPROCS(0), 2)+3)
	for i := range turns {
		turns[i] = new(turn)
	}
	return turns
}

func TestEachTurnIsTakenOnce(t *testing.T) {
	t.Parallel()
	for _, turns := range [][]*turn{nil, manyTurns()[:1], manyTurns()[:runTurns], manyTurns()} {
		if err := new(planner).each(turns, func(one *turn) error { one.original++; return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range turns {
			if turns[i].original != 1 {
				t.Errorf("of %d turns, turn %d was taken %d times", len(turns), i, turns[i].original)
			}
		}
	}
}

// A panic on a core of its own would end the program: it becomes an error, which leaves
// the prompt as it came.
func TestWhatFailsOrPanicsForATurnIsAnError(t *testing.T) {
	t.Parallel()
	turns := manyTurns()
	broken := errors.New("broken")
	last := turns[len(turns)-1]
	err := new(planner).each(turns, func(one *turn) error {
		if one == last {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("a turn that fails: %v", err)
	}
	if runtime.GOMAXPROCS(0) < 2 {
		return // one core plans in the request, whose panics the chain takes up
	}
	err = new(planner).each(turns, func(one *turn) error {
		if one == last {
			panic("index out of range")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "panicked: index out of range") {
		t.Errorf("a turn that panics: %v", err)
	}
}
