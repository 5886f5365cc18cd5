package limits_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"palimpsest/api/limits"
	"palimpsest/api/redistest"
	"palimpsest/tenants"
)

// storm has many requests that may cost something begin at once, and returns those
// that were let begin.
func storm(t *testing.T, micro int64, subject limits.Subject, quota tenants.Quota, limiters ...*limits.Limiter) []*limits.Ticket {
	t.Helper()
	var mu sync.Mutex
	var let []*limits.Ticket
	var group sync.WaitGroup
	start := make(chan struct{})
	try := func(limiter *limits.Limiter) {
		ticket, err := limiter.Admit(t.Context(), limits.Held{Subject: subject, Quota: quota})
		if err == nil {
			err = ticket.Take(t.Context(), 10, 0, micro)
		}
		exceeded, is := errors.AsType[limits.Exceeded](err)
		switch {
		case err == nil:
			mu.Lock()
			defer mu.Unlock()
			let = append(let, ticket)
			return
		case !is || exceeded.Kind != limits.HeldBudget || exceeded.Wait != 0:
			t.Errorf("refused: %v", err)
		}
		ticket.Settle(t.Context(), 0, 0) // frees nothing that others hold
	}
	for worker := range 8 {
		group.Go(func() {
			<-start
			for range 6 {
				try(limiters[worker%len(limiters)])
			}
		})
	}
	close(start)
	group.Wait()
	return let
}

// However many begin at once, only the last of those that are let begin can exceed a
// budget.
func TestBudgetIsHeldByWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, quota := range map[string]tenants.Quota{
		"day": {DayMicroUSD: 1000}, "month": {MonthMicroUSD: 1000},
		"both": {DayMicroUSD: 5000, MonthMicroUSD: 1000, TokensPerMinute: 1_000_000, Concurrency: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(t *testing.T, _ *bundle, limiter *limits.Limiter, _ bool) {
				t.Helper()
				subject := newSubject()
				let := storm(t, 300, subject, quota, limiter)
				if len(let) != 4 {
					t.Fatalf("%d began that may cost 300 of 1000 each, want 4", len(let))
				}
				for _, ticket := range let { // less than they might have
					ticket.Settle(t.Context(), 0, 100)
					ticket.Settle(t.Context(), 0, 100)
				}
				let = storm(t, 300, subject, quota, limiter)
				if len(let) != 2 {
					t.Fatalf("%d began with 600 left, want 2", len(let))
				}
				free := admit(t, limiter, subject, quota)
				if err := free.Take(t.Context(), 10, 0, 0); err != nil {
					t.Errorf("what costs nothing is refused: %v", err)
				}
				for _, ticket := range let {
					ticket.Settle(t.Context(), 0, 300)
				}
				if exceeded := refused(t, limiter, subject, quota); exceeded.Kind != limits.DayBudget && exceeded.Kind != limits.MonthBudget {
					t.Errorf("with the budget used up: %s", exceeded.Kind)
				}
			})
		})
	}
}

// A request that is let begin although it costs more than is left is the last.
func TestLastRequestOfABudgetMayExceedIt(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, _ *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000}
		ticket, late := admit(t, limiter, subject, quota), admit(t, limiter, subject, quota)
		if err := ticket.Take(t.Context(), 0, 0, 40_000); err != nil {
			t.Fatalf("the only one: %v", err)
		}
		ticket.Settle(t.Context(), 0, 40_000)
		exceeded, _ := errors.AsType[limits.Exceeded](late.Take(t.Context(), 0, 0, 1))
		if exceeded.Kind != limits.DayBudget || exceeded.Wait != 12*time.Hour {
			t.Errorf("the next one, let in before: %s for %s", exceeded.Kind, exceeded.Wait)
		}
	})
}

// S19: replicas see what the others hold.
func TestReplicasShareWhatIsHeld(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	one, two := b.replica(t, address), b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000}
	for _, ticket := range storm(t, 250, subject, quota, one.Limiter, two.Limiter) {
		ticket.Settle(t.Context(), 0, 200)
	}
	if let := storm(t, 250, subject, quota, two.Limiter, one.Limiter); len(let) != 1 {
		t.Errorf("%d began with 200 left, want 1", len(let))
	}
	if alone := one.alone.Load() + two.alone.Load(); alone != 0 {
		t.Errorf("%d decisions were made without Redis", alone)
	}
}

// A replica knows what its own requests hold when Redis is gone.
func TestHeldLimitsOutlastRedis(t *testing.T) {
	t.Parallel()
	address, stop := redistest.Start(t)
	b := setup()
	r := b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000}
	running := admit(t, r.Limiter, subject, quota)
	if err := running.Take(t.Context(), 0, 0, 900); err != nil {
		t.Fatal(err)
	}
	stop()
	let := storm(t, 50, subject, quota, r.Limiter)
	if len(let) != 2 {
		t.Errorf("%d began that may cost 50 of the 100 that are left, want 2", len(let))
	}
	for _, ticket := range let {
		ticket.Settle(t.Context(), 0, 0)
	}
	running.Settle(t.Context(), 0, 0)
	if let = storm(t, 500, subject, quota, r.Limiter); len(let) != 2 {
		t.Errorf("%d began after it had ended, want 2", len(let))
	}
}
