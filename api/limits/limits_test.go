package limits_test

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"palimpsest/api/limits"
	"palimpsest/api/redistest"
	"palimpsest/tenants"
)

// everywhere runs a test on a limiter that counts in its process, and on one that
// counts in Redis.
func everywhere(t *testing.T, run func(t *testing.T, b *bundle, limiter *limits.Limiter, isShared bool)) {
	t.Helper()
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		b := setup()
		run(t, b, b.local(), false)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		b := setup()
		address, _ := redistest.Start(t)
		r := b.replica(t, address)
		run(t, b, r.Limiter, true)
		if alone := r.alone.Load(); alone != 0 {
			t.Errorf("%d decisions were made without Redis", alone)
		}
	})
}

func TestRequestsOverTheirRateWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle, limiter *limits.Limiter, isShared bool) {
		t.Helper()
		subject, quota, began := newSubject(), tenants.Quota{RequestsPerMinute: 2}, time.Now()
		if left := admit(t, limiter, subject, quota).Left().RequestsPerMinute; left != 1 {
			t.Errorf("%d are left after the first", left)
		}
		admit(t, limiter, subject, quota)
		exceeded := refused(t, limiter, subject, quota)
		// Redis's clock goes on meanwhile.
		if least := 30*time.Second - time.Since(began) - time.Millisecond; exceeded.Kind != limits.Requests || exceeded.Wait < least || exceeded.Wait > 30*time.Second {
			t.Errorf("refused by %s for %s, want %s to 30s", exceeded.Kind, exceeded.Wait, least)
		}
		admit(t, limiter, newSubject(), quota)
		if isShared {
			return // its clock is Redis's
		}
		b.advance(exceeded.Wait)
		admit(t, limiter, subject, quota)
		if next := refused(t, limiter, subject, quota).Wait; next != 30*time.Second {
			t.Errorf("the next one waits %s", next)
		}
	})
}

func TestTokensAreTakenBeforeAndSettledAfter(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, _ *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		subject, quota, began := newSubject(), tenants.Quota{TokensPerMinute: 1_000_000}, time.Now()
		ticket := admit(t, limiter, subject, quota)
		if err := ticket.Take(t.Context(), 600_000, 0, 0); err != nil {
			t.Fatal(err)
		}
		other := admit(t, limiter, subject, quota)
		exceeded, _ := errors.AsType[limits.Exceeded](other.Take(t.Context(), 600_000, 0, 0))
		// Redis's clock goes on meanwhile.
		if least := 12*time.Second - time.Since(began) - time.Millisecond; exceeded.Kind != limits.Tokens || exceeded.Wait < least || exceeded.Wait > 12*time.Second {
			t.Errorf("the second is refused by %s for %s, want %s to 12s", exceeded.Kind, exceeded.Wait, least)
		}
		never, _ := errors.AsType[limits.Exceeded](other.Take(t.Context(), 1_000_001, 0, 0))
		if never.Kind != limits.Tokens || never.Asked != 1_000_001 || never.Wait != 0 {
			t.Errorf("what never fits: %+v", never)
		}
		other.Settle(t.Context(), 0, 0)

		ticket.Settle(t.Context(), 100_000, 0) // the provider counted less: the rest comes back
		third := admit(t, limiter, subject, quota)
		if err := third.Take(t.Context(), 800_000, 0, 0); err != nil {
			t.Fatalf("after what came back: %v", err)
		}
		third.Settle(t.Context(), 3_000_000, 0) // and more: the debt is worked off
		if debt := refused(t, limiter, subject, quota); debt.Kind != limits.Tokens || debt.Wait < 2*time.Minute-time.Since(began) {
			t.Errorf("with a debt: %s for %s", debt.Kind, debt.Wait)
		}
	})
}

func TestRequestsUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, _ *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		subject, quota := newSubject(), tenants.Quota{Concurrency: 2}
		first := admit(t, limiter, subject, quota)
		second := admit(t, limiter, subject, quota)
		if exceeded := refused(t, limiter, subject, quota); exceeded.Kind != limits.Concurrency || exceeded.Wait != 0 {
			t.Errorf("refused by %s for %s", exceeded.Kind, exceeded.Wait)
		}
		limiter.Upkeep(t.Context())
		refused(t, limiter, subject, quota)
		first.Settle(t.Context(), 0, 0)
		first.Settle(t.Context(), 0, 0) // a second end frees nothing
		admit(t, limiter, subject, quota).Settle(t.Context(), 0, 0)
		second.Settle(t.Context(), 0, 0)
		workspace := limits.Subject{Workspace: subject.Workspace, Spender: tenants.Spender{Kind: tenants.WorkspaceSpends}}
		admit(t, limiter, workspace, tenants.Quota{Concurrency: 1})
		refused(t, limiter, workspace, tenants.Quota{Concurrency: 1})
	})
}

func TestBudgetHoldsUntilItsDayOrMonthIsOver(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		b.spend(900_000, 4_000_000, nil)
		subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1_000_000, MonthMicroUSD: 5_000_000}
		ticket := admit(t, limiter, subject, quota)
		if left := ticket.Left(); left.DayMicroUSD != 100_000 || left.MonthMicroUSD != 1_000_000 {
			t.Errorf("the database is not asked: %+v is left", left)
		}
		ticket.Settle(t.Context(), 0, 100_000)
		if exceeded := refused(t, limiter, subject, quota); exceeded.Kind != limits.DayBudget || exceeded.Wait != 12*time.Hour {
			t.Errorf("refused by %s for %s", exceeded.Kind, exceeded.Wait)
		}
		b.spend(0, 4_100_000, nil)
		b.advance(12 * time.Hour)
		ticket = admit(t, limiter, subject, quota)
		if left := ticket.Left(); left.DayMicroUSD != 1_000_000 || left.MonthMicroUSD != 900_000 {
			t.Errorf("on the next day %+v is left", left)
		}
		ticket.Settle(t.Context(), 0, 900_000)
		if exceeded := refused(t, limiter, subject, quota); exceeded.Kind != limits.MonthBudget || exceeded.Wait != 20*24*time.Hour {
			t.Errorf("refused by %s for %s", exceeded.Kind, exceeded.Wait)
		}
		b.advance(20 * 24 * time.Hour)
		b.spend(0, 0, nil)
		admit(t, limiter, subject, quota)
	})
}

// A restart does not reset a budget, and the database is asked once, not for each
// request.
func TestSpendIsReadOnceAndThenInTheBackground(t *testing.T) {
	t.Parallel()
	b := setup()
	limiter := b.local()
	b.spend(0, 0, errors.New("connection refused"))
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1_000_000}
	for range 10 {
		admit(t, limiter, subject, quota).Settle(t.Context(), 0, 0) // requests flow without the database
	}
	if b.asked != 1 {
		t.Errorf("the database was asked %d times", b.asked)
	}
	b.spend(1_000_000, 1_000_000, nil)
	admit(t, limiter, subject, quota).Settle(t.Context(), 0, 0)
	limiter.Upkeep(t.Context())
	if exceeded := refused(t, limiter, subject, quota); exceeded.Kind != limits.DayBudget || b.asked != 2 {
		t.Errorf("after the database is back: %s, asked %d times", exceeded.Kind, b.asked)
	}
	b.advance(time.Hour)
	limiter.Upkeep(t.Context())
	limiter.Upkeep(t.Context())
	if b.asked != 2 {
		t.Errorf("a key that nobody uses is read again: %d times", b.asked)
	}
}

// S19: two replicas share a limit exactly.
func TestTwoReplicasShareALimitExactly(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	replicas := [2]*replica{b.replica(t, address), b.replica(t, address)}
	subject, quota := newSubject(), tenants.Quota{RequestsPerMinute: 60}
	began := time.Now()
	var mu sync.Mutex
	var group sync.WaitGroup
	let := 0
	for worker := range 8 {
		group.Go(func() {
			for range 50 {
				ticket, err := replicas[worker%2].Admit(t.Context(), limits.Held{Subject: subject, Quota: quota})
				if err == nil {
					mu.Lock()
					let++
					mu.Unlock()
				}
				ticket.Settle(t.Context(), 0, 0)
			}
		})
	}
	group.Wait()
	// One more comes back each second.
	if most := 60 + int(time.Since(began)/time.Second); let < 60 || let > most {
		t.Errorf("%d of 400 requests were let in, want 60 to %d", let, most)
	}
	if alone := replicas[0].alone.Load() + replicas[1].alone.Load(); alone != 0 {
		t.Errorf("%d decisions were made without Redis", alone)
	}
}

// S19: replicas share concurrency and budgets too; S5: another workspace's counters
// are others.
func TestReplicasShareConcurrencyAndBudgets(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	one, two := b.replica(t, address), b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{Concurrency: 1, DayMicroUSD: 1000}
	ticket := admit(t, one.Limiter, subject, quota)
	if exceeded := refused(t, two.Limiter, subject, quota); exceeded.Kind != limits.Concurrency {
		t.Errorf("under way on the other: %s", exceeded.Kind)
	}
	ticket.Settle(t.Context(), 0, 1000)
	if exceeded := refused(t, two.Limiter, subject, quota); exceeded.Kind != limits.DayBudget {
		t.Errorf("spent on the other: %s", exceeded.Kind)
	}
	twin := limits.Subject{Workspace: newSubject().Workspace, Spender: subject.Spender}
	admit(t, two.Limiter, twin, quota)
	keys, err := redistest.Client(t, address).Keys(t.Context(), "*").Result()
	if err != nil || len(keys) < 2 {
		t.Fatalf("keys %v, %v", keys, err)
	}
	for _, key := range keys {
		if prefix := "palimpsest:limits:{"; key[:len(prefix)] != prefix || key[len(prefix):len(prefix)+36] != subject.Workspace.String() && key[len(prefix):len(prefix)+36] != twin.Workspace.String() {
			t.Errorf("%s does not begin with its workspace", key)
		}
	}
}

// S19: with Redis killed, traffic flows under local limits and an alarm rises.
func TestReplicaHoldsLimitsByItselfWithoutRedis(t *testing.T) {
	t.Parallel()
	address, stop := redistest.Start(t)
	b := setup()
	r := b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{RequestsPerMinute: 10, DayMicroUSD: 1_000_000}
	running := admit(t, r.Limiter, subject, quota)
	for range 3 {
		admit(t, r.Limiter, subject, quota).Settle(t.Context(), 0, 200_000)
	}
	stop()
	for i := range 6 { // the four before count here too
		ticket := admit(t, r.Limiter, subject, quota)
		if i == 0 && ticket.Left().DayMicroUSD != 400_000 {
			t.Errorf("%d of the budget is left", ticket.Left().DayMicroUSD)
		}
		ticket.Settle(t.Context(), 0, 0)
	}
	if exceeded := refused(t, r.Limiter, subject, quota); exceeded.Kind != limits.Requests {
		t.Errorf("refused by %s", exceeded.Kind)
	}
	if alone := r.alone.Load(); alone != 7 {
		t.Errorf("%d decisions raised the alarm, want 7", alone)
	}
	running.Settle(t.Context(), 0, 400_000)
	if exceeded := refused(t, r.Limiter, subject, quota); exceeded.Kind != limits.DayBudget {
		t.Errorf("with the budget used up: %s", exceeded.Kind)
	}
}

// A Redis that takes connections and says nothing is waited for as long as the config
// says, and then not asked again.
func TestRedisThatHangsIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	hanging, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hanging.Close() })
	b, alone := setup(), 0
	limiter := limits.New(limits.Config{
		Spend: b.Spent, Now: b.clock, Redis: redistest.Client(t, hanging.Addr().String()), Alone: func() { alone++ }, Patience: time.Millisecond,
	})
	subject, quota := newSubject(), tenants.Quota{RequestsPerMinute: 2}
	for range 2 {
		admit(t, limiter, subject, quota)
	}
	if exceeded := refused(t, limiter, subject, quota); exceeded.Kind != limits.Requests || alone != 3 {
		t.Errorf("refused by %s, %d decisions were made alone, want 3", exceeded.Kind, alone)
	}
}

// A subject without limits is not counted at all.
func TestNothingIsCountedWithoutLimits(t *testing.T) {
	t.Parallel()
	b := setup()
	limiter := b.local()
	limiter.Start()
	defer limiter.Stop()
	ticket := admit(t, limiter, newSubject(), tenants.Quota{AllowUnpriced: true})
	if err := ticket.Take(t.Context(), 1<<40, 0, 0); err != nil || ticket.Left() != (limits.Remaining{}) || b.asked != 0 {
		t.Errorf("%v, %+v, the database was asked %d times", err, ticket.Left(), b.asked)
	}
	ticket.Settle(t.Context(), 1, 1)
	(*limits.Ticket)(nil).Settle(t.Context(), 1, 1)
}

func BenchmarkAdmitAndSettle(b *testing.B) {
	limiter := setup().local()
	subject := newSubject()
	quota := tenants.Quota{RequestsPerMinute: 1_000_000, TokensPerMinute: 1_000_000_000, Concurrency: 10, DayMicroUSD: 1 << 40}
	for b.Loop() {
		ticket, err := limiter.Admit(b.Context(), limits.Held{Subject: subject, Quota: quota})
		if err != nil {
			b.StopTimer()
			limiter = setup().local()
			b.StartTimer()
			continue
		}
		_ = ticket.Take(b.Context(), 10, 0, 0)
		ticket.Settle(b.Context(), 12, 1)
	}
}
