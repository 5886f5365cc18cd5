package summaries

import (
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// A summary that was lost with its process is asked for again with a request of its
// lane, once no attempt at it can be under way any more.
func TestALostSummaryIsCalledForAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	summaries := &Service{Config: Config{Now: func() time.Time { return now }}}
	for name, test := range map[string]struct {
		age    time.Duration // of the epoch
		asked  int           // messages of a summary that this process knows of
		covers int
	}{
		"may be under way": {lostAfter, 0, 0},
		"lost":             {lostAfter + time.Second, 0, 40},
		"an older one":     {lostAfter + time.Second, 20, 40},
		"there":            {lostAfter + time.Second, 40, 0},
	} {
		exchange := &pipeline.Exchange{View: pipeline.View{Lane: pipeline.Lane{Projection: &session.Projection{Covers: 40, At: now.Add(-test.age)}}}}
		covers, again := summaries.calledFor(exchange, test.asked)
		if covers != test.covers || again != (test.covers > 0) {
			t.Errorf("%s: %d messages, again %v", name, covers, again)
		}
	}
}
