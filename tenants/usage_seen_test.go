package tenants_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// S3: a key without a person does not see everyone's usage, which a filter without a member selects.
func TestUsageOfNoOneIsNotEveryones(t *testing.T) {
	t.Parallel()
	person, other := uuid.New(), uuid.New()
	for _, test := range []struct {
		person, want uuid.UUID
		all          bool
	}{{person, person, false}, {uuid.Nil, uuid.Max, false}, {person, other, true}, {uuid.Nil, other, true}} {
		may := func(permission tenants.Permission) bool { return test.all && permission == tenants.ReadSpend }
		if got := (tenants.UsageFilter{Member: other}).SeenBy(test.person, may).Member; got != test.want {
			t.Errorf("%s, all %t: %s, want %s", test.person, test.all, got, test.want)
		}
	}
}

// A range is compared with the one before it, of the same length.
func TestRangeBeforeHasTheSameLength(t *testing.T) {
	t.Parallel()
	at := func(day int) time.Time { return time.Date(2027, 3, day, 6, 30, 0, 0, time.UTC) }
	if got := (tenants.UsageFilter{From: at(10), To: at(13), Client: "codex"}).Before(); got != (tenants.UsageFilter{From: at(7), To: at(10), Client: "codex"}) {
		t.Errorf("before: %+v", got)
	}
}

// A forecast begins after a quarter of its period and ends with it.
func TestForecastNeedsAQuarterAndEndsWithItsPeriod(t *testing.T) {
	t.Parallel()
	from := time.Date(2027, 3, 10, 0, 0, 0, 0, time.UTC)
	to := from.Add(4 * time.Hour)
	for now, want := range map[time.Time]int64{
		from: 0, from.Add(time.Hour - 1): 0, from.Add(time.Hour): 40, from.Add(2 * time.Hour): 20, to: 10, to.Add(1): 0, from.Add(-time.Hour): 0,
	} {
		if got, ok := tenants.Forecast(10, from, to, now); got != want || ok != (want > 0) {
			t.Errorf("after %s: %d, %t, want %d", now.Sub(from), got, ok, want)
		}
	}
	if _, ok := tenants.Forecast(10, to, to, to); ok {
		t.Error("a period without length has a forecast")
	}
}
