package sessions

import (
	"testing"
	"time"
)

// Words about time and people are taken out of a query, unless a range is chosen or they are in quotation marks.
func TestQueryIsReadWithoutTheWordsThatNarrowIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2028, time.February, 29, 15, 30, 0, 0, time.UTC)
	for query, want := range map[string]struct {
		hasRange         bool
		rest, time, mine string
	}{
		"refund rounding last week":        {rest: "refund rounding", time: "last week"},
		"the plan of mine on 3 January":    {rest: "the plan of", time: "on 3 January", mine: "mine"},
		"in my sessions: refunds":          {rest: ": refunds", mine: "in my sessions"},
		`"mine last week"`:                 {rest: `"mine last week"`},
		"determine undermined mines":       {rest: "determine undermined mines"},
		"refund rounding since last month": {rest: "refund rounding since last month", hasRange: true},
	} {
		if got := understand(query, now, want.hasRange); got.Rest != want.rest || got.Time != want.time || got.Mine != want.mine {
			t.Errorf("%q: %+v, want %+v", query, got, want)
		}
	}
}
