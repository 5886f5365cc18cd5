package inspection

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheckJudgesClocks(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]verdict{
		0: verdictOK, time.Second: verdictOK, -time.Second: verdictOK, 5 * time.Second: verdictWarn, -5 * time.Second: verdictWarn,
		time.Minute: verdictFail, -time.Minute: verdictFail,
	} {
		if got := clockResult(ahead, 10*time.Millisecond); got.Status != want {
			t.Errorf("%s ahead: %+v, want %s", ahead, got, want)
		}
	}
	if got := clockResult(4*time.Second, 6*time.Second); got.Status != verdictOK {
		t.Errorf("a difference that a slow network explains: %+v", got)
	}
}

// A part that hangs fails after its time, and the others are in the list.
func TestCheckDoesNotWaitForAPartThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		results := examine(t.Context(), time.Minute, []examination{
			{"hangs", func(context.Context) result { <-release; return passed("late") }},
			{"works", func(context.Context) result { return passed("at once") }},
		})
		close(release)
		if results[0].Status != verdictFail || results[0].Name != "hangs" || results[1].Status != verdictOK {
			t.Errorf("%+v", results)
		}
	})
}
