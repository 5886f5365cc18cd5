package limits_test

import (
	"context"
	"testing"
	"time"

	"palimpsest/api/limits"
	"palimpsest/api/redistest"
	"palimpsest/tenants"
)

// S19: what a client asks for counts in Redis though it has left meanwhile, and that it
// left is no outage.
func TestClientThatLeavesIsCountedInRedis(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	one, two := b.replica(t, address), b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{RequestsPerMinute: 10, Concurrency: 2, TokensPerMinute: 1000, DayMicroUSD: 1_000_000}
	left, cancel := context.WithCancel(t.Context())
	cancel()

	ticket, err := one.Admit(left, limits.Held{Subject: subject, Quota: quota})
	if err != nil {
		t.Fatal(err)
	}
	if err := ticket.Take(left, 400, 0, 10); err != nil {
		t.Fatal(err)
	}
	ticket.Settle(left, 400, 600_000)

	other := admit(t, two.Limiter, subject, quota)
	if got := other.Left(); got.RequestsPerMinute != 8 || got.Concurrency != 1 || got.DayMicroUSD != 400_000 {
		t.Errorf("another replica has left %+v", got)
	}
	if alone := one.alone.Load() + two.alone.Load(); alone != 0 {
		t.Errorf("%d decisions were made without Redis", alone)
	}
}

// A settled request is not renewed: its replica forgets it, and a place in Redis that
// stands there still ends with its lease.
func TestSettledRequestsAreNotRenewed(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	r := b.replica(t, address)
	for name, quota := range map[string]tenants.Quota{"concurrency": {Concurrency: 1}, "budget": {DayMicroUSD: 1000}} {
		ticket := admit(t, r.Limiter, newSubject(), quota)
		if err := ticket.Take(t.Context(), 0, 0, 500); err != nil {
			t.Fatal(err)
		}
		if held := r.Held(); held != 1 {
			t.Errorf("%s: %d requests are renewed while one is under way", name, held)
		}
		ticket.Settle(t.Context(), 0, 0)
		if held := r.Held(); held != 0 {
			t.Errorf("%s: %d requests are renewed after the last one was settled", name, held)
		}
	}
}

// A budget that replicas share is not held back by requests that are over.
func TestSettledRequestsHoldNothingBack(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000, Concurrency: 1}
		for range 3 {
			ticket := admit(t, limiter, subject, quota)
			if err := ticket.Take(t.Context(), 0, 0, 900); err != nil {
				t.Fatalf("others hold the budget: %v", err)
			}
			limiter.Upkeep(t.Context())
			ticket.Settle(t.Context(), 0, 0)
			limiter.Upkeep(t.Context())
			b.advance(time.Second)
		}
	})
}
