package limits_test

import (
	"context"
	"testing"
	"time"

	"palimpsest/api/limits"
	"palimpsest/api/redistest"
	"palimpsest/tenants"
)

// A budget that is used up ends with its own day or month, in UTC, however long that is.
func TestUsedUpBudgetWaitsForTheNextDayOrMonth(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		west := time.FixedZone("west", -10*3600)
		for _, c := range []struct {
			now        time.Time
			day, month time.Duration
		}{
			{time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC), 24 * time.Hour, 28 * 24 * time.Hour},
			{time.Date(2028, 2, 28, 12, 0, 0, 0, time.UTC), 12 * time.Hour, 36 * time.Hour},
			{time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC), time.Second, time.Second},
			{time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 24 * time.Hour, 31 * 24 * time.Hour},
			{time.Date(2027, 3, 31, 20, 0, 0, 0, west), 18 * time.Hour, 30*24*time.Hour - 6*time.Hour}, // the first of April in UTC
		} {
			b.advance(c.now.Sub(b.clock()))
			b.spend(1000, 1000, nil)
			day := refused(t, limiter, newSubject(), tenants.Quota{DayMicroUSD: 1000, MonthMicroUSD: 1001})
			month := refused(t, limiter, newSubject(), tenants.Quota{DayMicroUSD: 1001, MonthMicroUSD: 1000})
			if day.Kind != limits.DayBudget || day.Wait != c.day || month.Kind != limits.MonthBudget || month.Wait != c.month {
				t.Errorf("%s: %s for %s and %s for %s, want %s and %s", c.now, day.Kind, day.Wait, month.Kind, month.Wait, c.day, c.month)
			}
		}
	})
}

// What a request costs counts for the day and the month in which it began.
func TestCostCountsWhenTheRequestBegan(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		quota := tenants.Quota{DayMicroUSD: 1000, MonthMicroUSD: 5000}
		for name, c := range map[string]struct {
			began      time.Time
			day, month int64 // left after midnight
		}{
			"the day before":   {time.Date(2026, 11, 10, 23, 59, 0, 0, time.UTC), 1000, 4700},
			"the month before": {time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC), 1000, 5000},
			"the year before":  {time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC), 1000, 5000},
		} {
			subject := newSubject()
			b.advance(c.began.Sub(b.clock()))
			ticket := admit(t, limiter, subject, quota)
			b.advance(2 * time.Minute)
			ticket.Settle(t.Context(), 0, 300)
			if left := admit(t, limiter, subject, quota).Left(); left.DayMicroUSD != c.day || left.MonthMicroUSD != c.month {
				t.Errorf("%s: %d of the day and %d of the month are left, want %d and %d", name, left.DayMicroUSD, left.MonthMicroUSD, c.day, c.month)
			}
		}
	})
}

// The day's and the month's sum are kept apart where Redis lost both while a request ran, and each
// longer than it counts.
func TestRedisThatLostItsSumsGetsEachOfThemAgain(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	b.spend(300, 4000, nil)
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 10_000, MonthMicroUSD: 10_000}
	ticket := admit(t, b.replica(t, address).Limiter, subject, quota)
	client := redistest.Client(t, address)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	ticket.Settle(t.Context(), 0, 50)
	b.spend(0, 0, nil)
	if left := admit(t, b.replica(t, address).Limiter, subject, quota).Left(); left.DayMicroUSD != 10_000-350 || left.MonthMicroUSD != 10_000-4050 {
		t.Errorf("another replica sees %+v left", left)
	}
	prefix := "palimpsest:limits:{" + subject.Workspace.String() + "}:" + subject.ID
	for name, span := range map[string]time.Duration{":day:2026-11-10": 24 * time.Hour, ":month:2026-11": 31 * 24 * time.Hour} {
		kept, err := client.PTTL(t.Context(), prefix+name).Result()
		if err != nil || kept <= span || kept > 3*span {
			t.Errorf("%s is kept for %s, %v", name, kept, err)
		}
	}
}

// What is spent here and not recorded yet is not forgotten when the database is asked again.
func TestDatabaseThatLagsForgetsNoSpend(t *testing.T) {
	t.Parallel()
	b := setup()
	limiter := b.local()
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000, MonthMicroUSD: 5000}
	admit(t, limiter, subject, quota).Settle(t.Context(), 0, 600)
	limiter.Upkeep(t.Context())
	if left := admit(t, limiter, subject, quota).Left(); left.DayMicroUSD != 400 || left.MonthMicroUSD != 4400 {
		t.Errorf("%+v is left", left)
	}
}

// Every subject with a budget is read again.
func TestSpendOfEverySubjectIsReadAgain(t *testing.T) {
	t.Parallel()
	b := setup()
	limiter := b.local()
	quota := tenants.Quota{DayMicroUSD: 1000}
	subjects := []limits.Subject{newSubject(), newSubject(), newSubject()}
	for _, subject := range subjects {
		admit(t, limiter, subject, quota)
	}
	b.spend(1000, 1000, nil)
	limiter.Upkeep(t.Context())
	for _, subject := range subjects {
		refused(t, limiter, subject, quota)
	}
}

// An answer of the database about the day before, which comes after midnight, does not reduce the
// spend of the new day.
func TestSpendOfYesterdayDoesNotReplaceThatOfToday(t *testing.T) {
	t.Parallel()
	b := setup()
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000, MonthMicroUSD: 5000}
	var limiter *limits.Limiter
	asked := 0
	limiter = limits.New(limits.Config{Now: b.clock, Spend: func(ctx context.Context, _ tenants.WorkspaceID, _ tenants.Spender, _, _ time.Time) (day, month int64, err error) {
		if asked++; asked == 2 {
			b.advance(12 * time.Hour)
			ticket, err := limiter.Admit(ctx, limits.Held{Subject: subject, Quota: quota})
			if err != nil {
				t.Error(err)
			}
			ticket.Settle(ctx, 0, 700)
			return 900, 900, nil
		}
		return 0, 0, nil
	}})
	admit(t, limiter, subject, quota)
	limiter.Upkeep(t.Context())
	if left := admit(t, limiter, subject, quota).Left(); left.DayMicroUSD != 300 || left.MonthMicroUSD != 5000-900 {
		t.Errorf("%+v is left", left)
	}
}
