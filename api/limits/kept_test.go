package limits_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"palimpsest/api/limits"
	"palimpsest/api/redistest"
	"palimpsest/tenants"
)

// S19: a place among requests that run at once is renewed while its request runs.
func TestRunningRequestKeepsItsPlace(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	one, two := b.replica(t, address), b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{Concurrency: 1}
	running := admit(t, one.Limiter, subject, quota)
	client, key := redistest.Client(t, address), "palimpsest:limits:{"+subject.Workspace.String()+"}:"+subject.ID+":running"
	members, err := client.ZRange(t.Context(), key, 0, -1).Result()
	if err != nil || len(members) != 1 {
		t.Fatalf("running: %v, %v", members, err)
	}
	now, err := client.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	half := now.Add(time.Minute / 2)
	if err := client.ZAdd(t.Context(), key, redis.Z{Score: float64(half.UnixMicro()), Member: members[0]}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.PExpire(t.Context(), key, time.Minute/2).Err(); err != nil {
		t.Fatal(err)
	}

	one.Upkeep(t.Context())
	score, err := client.ZScore(t.Context(), key, members[0]).Result()
	if end := time.UnixMicro(int64(score)); err != nil || !end.After(half) {
		t.Errorf("the place ends at %v (%v), at %v before it was renewed", end, err, half)
	}
	if left, err := client.PTTL(t.Context(), key).Result(); err != nil || left <= time.Minute/2 {
		t.Errorf("the list of places ends in %v (%v)", left, err)
	}
	if exceeded := refused(t, two.Limiter, subject, quota); exceeded.Kind != limits.Concurrency {
		t.Errorf("refused by %s", exceeded.Kind)
	}
	running.Settle(t.Context(), 0, 0)
	admit(t, two.Limiter, subject, quota)
}

// What a subject has used is forgotten once it is idle, so that memory does not grow with
// every key, but never while a request runs or holds a part of a budget.
func TestIdleSubjectsAreForgotten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		quota   tenants.Quota
		settles bool
		idle    time.Duration
		want    int
	}{
		"idle":                   {tenants.Quota{RequestsPerMinute: 1}, true, 2 * time.Hour, 0},
		"used lately":            {tenants.Quota{RequestsPerMinute: 1}, true, time.Second, 1},
		"running":                {tenants.Quota{Concurrency: 1}, false, 2 * time.Hour, 1},
		"holds its budget":       {tenants.Quota{DayMicroUSD: 1000}, false, 2 * time.Hour, 1},
		"has settled its budget": {tenants.Quota{DayMicroUSD: 1000}, true, 2 * time.Hour, 0},
	} {
		b := setup()
		limiter := b.local()
		ticket := admit(t, limiter, newSubject(), test.quota)
		if err := ticket.Take(t.Context(), 0, 0, 100); err != nil {
			t.Fatal(err)
		}
		if test.settles {
			ticket.Settle(t.Context(), 0, 0)
		}
		b.advance(test.idle)
		limiter.Upkeep(t.Context())
		if known := limiter.Known(); known != test.want {
			t.Errorf("%s: %d subjects are known, want %d", name, known, test.want)
		}
	}
}

// A ticket of nothing takes and settles nothing, and says that nothing is left or limited.
func TestTicketOfNothingCountsNothing(t *testing.T) {
	t.Parallel()
	for name, ticket := range map[string]*limits.Ticket{"none": nil, "zero": {}} {
		if err := ticket.Take(t.Context(), 1<<30, 0, 1<<40); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ticket.Settle(t.Context(), 1, 1)
		if ticket.Quota() != (tenants.Quota{}) || ticket.Left() != (limits.Remaining{}) {
			t.Errorf("%s: %+v, %+v", name, ticket.Quota(), ticket.Left())
		}
	}
}

// What other replicas have spent is known here once a request is settled, and still
// counts when Redis is gone.
func TestSpendOfOtherReplicasOutlastsRedis(t *testing.T) {
	t.Parallel()
	address, stop := redistest.Start(t)
	b := setup()
	one, two := b.replica(t, address), b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000}
	mine := admit(t, one.Limiter, subject, quota)
	admit(t, two.Limiter, subject, quota).Settle(t.Context(), 0, 950)
	mine.Settle(t.Context(), 0, 50)
	stop()
	if exceeded := refused(t, one.Limiter, subject, quota); exceeded.Kind != limits.DayBudget {
		t.Errorf("refused by %s", exceeded.Kind)
	}
}
