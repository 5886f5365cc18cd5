package cost_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/cost"
)

func newTracker(t *testing.T) *cost.Tracker {
	t.Helper()
	tracker, err := cost.NewTracker()
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

// answered is a prompt with a projection that was sent so many minutes after noon.
func answered(minute, projection int) cost.Cached {
	return cost.Cached{Prompt: cost.Prompt{At: noon().Add(time.Duration(minute) * time.Minute), Projection: projection, Position: minute}}
}

func TestBookKnowsThePromptThatWasSentLast(t *testing.T) {
	t.Parallel()
	tracker, lane := newTracker(t), uuid.New()
	tracker.Truncated(lane, 1)
	if _, known := tracker.Last(lane); known {
		t.Error("a lane that nobody answered has a last prompt")
	}
	tracker.Add(lane, answered(2, 1), 10)
	tracker.Add(lane, answered(1, 1), 10) // its answer took longer
	if last, known := tracker.Last(lane); !known || last.Position != 2 {
		t.Errorf("the last prompt is %+v", last)
	}
	if _, known := tracker.Last(uuid.New()); known {
		t.Error("another lane is known")
	}
	if balance := tracker.Balance(lane); balance.Net != 20 || balance.Truncated != 1 {
		t.Errorf("balance %+v", balance)
	}
}

// Two prompts may go out in the same moment: the newest is the one that was answered last.
func TestPromptsOfOneMomentAreKnownByTheLastAnswer(t *testing.T) {
	t.Parallel()
	tracker, lane := newTracker(t), uuid.New()
	first, second := answered(1, 1), answered(1, 1)
	second.Position = 7
	tracker.Add(lane, first, 0)
	tracker.Add(lane, second, 0)
	if last, _ := tracker.Last(lane); last.Position != 7 {
		t.Errorf("the last prompt is %+v", last)
	}
}

// The answer to a prompt under an older projection may come late. It counts for the lane, not for the newest.
func TestLateAnswerDoesNotCountForTheNewestProjection(t *testing.T) {
	t.Parallel()
	tracker, lane := newTracker(t), uuid.New()
	for _, entry := range []struct {
		projection int
		net        int64
	}{{1, 5}, {2, 10}, {1, -1000}} {
		tracker.Add(lane, answered(0, entry.projection), entry.net)
	}
	if got := tracker.Balance(lane); got.Net != -985 || got.Projection != 2 || got.Exchanges != 1 || got.Earned != 10 {
		t.Errorf("balance %+v", got)
	}
}

func TestBookIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	tracker, lane := newTracker(t), uuid.New()
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for minute := range 100 {
				tracker.Add(lane, answered(minute, 1), 1)
			}
		})
	}
	workers.Wait()
	if balance := tracker.Balance(lane); balance.Net != 800 || balance.Exchanges != 800 {
		t.Errorf("balance %+v", balance)
	}
}

func TestLossIsAProjectionThatWasPaidBackTooLate(t *testing.T) {
	t.Parallel()
	type entry struct {
		projection, times int
		net               int64
	}
	for name, test := range map[string]struct {
		entries []entry
		loss    bool
	}{
		"nothing yet":                             {nil, false},
		"an epoch that has not paid yet":          {[]entry{{1, 1, -1000}, {1, 48, 1}}, false},
		"one that has not after fifty":            {[]entry{{1, 1, -1000}, {1, 49, 1}}, true},
		"one that had not when the next one came": {[]entry{{1, 1, -1000}, {1, 5, 1}, {2, 1, -10}}, true},
		"one that had":                            {[]entry{{1, 1, -1000}, {1, 30, 100}, {2, 1, -10}}, false},
		"the lane has earned it elsewhere":        {[]entry{{1, 1, 9000}, {2, 1, -1000}, {3, 1, -1000}}, false},
		"no projection":                           {[]entry{{0, 80, -1}}, false},
		"a loss before the first projection":      {[]entry{{0, 1, -1000}, {1, 1, -10}}, false},
	} {
		tracker, lane := newTracker(t), uuid.New()
		var decisions []cost.Decision
		net := int64(0)
		for _, entry := range test.entries {
			for range entry.times {
				tracker.Add(lane, answered(0, entry.projection), entry.net)
				net += entry.net
				if entry.projection > len(decisions) {
					decisions = append(decisions, cost.Decision{Number: entry.projection})
				}
				if entry.projection > 0 {
					decisions[entry.projection-1].Realized += entry.net
					decisions[entry.projection-1].Exchanges++
				}
			}
		}
		if got := tracker.Balance(lane).IsLoss(); got != test.loss {
			t.Errorf("%s: loss %t, want %t", name, got, test.loss)
		}
		if got := cost.IsLoss(net, decisions); got != test.loss {
			t.Errorf("%s: loss by its decisions %t, want %t", name, got, test.loss)
		}
	}
}

func TestAdviceNamesTheLoss(t *testing.T) {
	t.Parallel()
	if advice, ok := cost.Advise(20, 1_000_000, -250_000); !ok || advice != (cost.Advice{Lost: 250_000, Without: 750_000, Exchanges: 20}) {
		t.Errorf("advice %+v, %t", advice, ok)
	}
	for _, saved := range [][3]int64{{20, 1_000_000, 0}, {20, 1_000_000, 5}, {19, 1_000_000, -250_000}, {0, 0, 0}} {
		if advice, ok := cost.Advise(saved[0], saved[1], saved[2]); ok {
			t.Errorf("%v: advice %+v", saved, advice)
		}
	}
}
