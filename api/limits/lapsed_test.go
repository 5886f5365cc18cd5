package limits_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"palimpsest/api/limits"
	"palimpsest/api/redistest"
	"palimpsest/tenants"
)

// heldIn is the only place among what a subject's requests hold in Redis.
type heldIn struct {
	t      *testing.T
	client redis.UniversalClient
	key    string
	place  string
}

func placeOf(t *testing.T, address string, subject limits.Subject) heldIn {
	t.Helper()
	client, key := redistest.Client(t, address), "palimpsest:limits:{"+subject.Workspace.String()+"}:"+subject.ID+":held"
	members, err := client.ZRange(t.Context(), key, 0, -1).Result()
	if err != nil || len(members) != 1 {
		t.Fatalf("held: %v, %v", members, err)
	}
	return heldIn{t: t, client: client, key: key, place: members[0]}
}

// endsIn has the lease end so much later than now.
func (h heldIn) endsIn(d time.Duration) {
	h.t.Helper()
	now, err := h.client.Time(h.t.Context()).Result()
	if err == nil {
		err = h.client.ZAdd(h.t.Context(), h.key, redis.Z{Score: float64(now.Add(d).UnixMicro()), Member: h.place}).Err()
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// exists reports whether anything is held.
func (h heldIn) exists() bool {
	left, err := h.client.Exists(h.t.Context(), h.key).Result()
	return err != nil || left != 0
}

// S47: what is under way is said again to be; what a killed replica held is charged.
func TestWhatAKilledReplicaHeldIsCharged(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	killed, other := b.replica(t, address), b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000, MonthMicroUSD: 5000}
	if err := admit(t, killed.Limiter, subject, quota).Take(t.Context(), 0, 0, 600); err != nil {
		t.Fatal(err)
	}
	place := placeOf(t, address, subject)
	place.endsIn(time.Minute / 2)
	killed.Upkeep(t.Context())
	now, err := place.client.Time(t.Context()).Result()
	score, scoreErr := place.client.ZScore(t.Context(), place.key, place.place).Result()
	if left := time.UnixMicro(int64(score)).Sub(now); err != nil || scoreErr != nil || left < time.Minute {
		t.Errorf("renewed it is held for %s (%v, %v)", left, err, scoreErr)
	}
	place.endsIn(-time.Second) // nobody renewed it
	for range 2 {              // once
		ticket := admit(t, other.Limiter, subject, quota)
		if left := ticket.Left(); left.DayMicroUSD != 400 || left.MonthMicroUSD != 4400 {
			t.Errorf("after its lease %+v is left", left)
		}
		ticket.Settle(t.Context(), 0, 0)
	}
}

// A replica that was only slow counts what its request has cost in the end, and no more.
func TestLateSettlementReplacesWhatWasCharged(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	slow, other := b.replica(t, address), b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000}
	ticket := admit(t, slow.Limiter, subject, quota)
	if err := ticket.Take(t.Context(), 0, 0, 600); err != nil {
		t.Fatal(err)
	}
	place := placeOf(t, address, subject)
	place.endsIn(-time.Second)
	admit(t, other.Limiter, subject, quota).Settle(t.Context(), 0, 0)
	slow.Upkeep(t.Context()) // does not hold again what is charged
	ticket.Settle(t.Context(), 0, 100)
	after := admit(t, setup().replica(t, address).Limiter, subject, quota)
	if left := after.Left(); left.DayMicroUSD != 900 {
		t.Errorf("%+v is left", left)
	}
	after.Settle(t.Context(), 0, 0)
	if place.exists() {
		t.Error("something is held still")
	}
}

// What the database has counted of a killed process is not held any more.
func TestReleasedPlacesHoldNothing(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	killed, next := b.replica(t, address), b.replica(t, address)
	subject, quota := newSubject(), tenants.Quota{DayMicroUSD: 1000}
	ticket := admit(t, killed.Limiter, subject, quota)
	if err := ticket.Take(t.Context(), 0, 0, 600); err != nil {
		t.Fatal(err)
	}
	place := placeOf(t, address, subject)
	next.Release(t.Context(), ticket.Places())
	if place.exists() {
		t.Error("something is held still")
	}
	next.Release(t.Context(), nil)
}

// A killed process held a part of several budgets, one of which joined the request late. All are released.
func TestPlacesInEveryBudgetAreReleased(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	b := setup()
	killed, next := b.replica(t, address), b.replica(t, address)
	subjects := []limits.Subject{newSubject(), newSubject(), newSubject()}
	var held []limits.Held
	for i := range subjects {
		subjects[i].Workspace = subjects[0].Workspace
		held = append(held, limits.Held{Subject: subjects[i], Quota: tenants.Quota{DayMicroUSD: 1000}})
	}
	ticket, err := killed.Admit(t.Context(), held[:2]...)
	if err == nil {
		err = killed.Join(t.Context(), ticket, held[2])
	}
	if err == nil {
		err = ticket.Take(t.Context(), 0, 0, 600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var places []heldIn
	for _, subject := range subjects {
		places = append(places, placeOf(t, address, subject))
	}
	next.Release(t.Context(), ticket.Places())
	for i, place := range places {
		if place.exists() {
			t.Errorf("budget %d holds something still", i)
		}
	}
}

// The limits of an end user join a request once its body is read. They hold and count as the others do.
func TestLimitsThatJoinHoldAndCount(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, _ *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		user := limits.Held{Subject: newSubject(), Quota: tenants.Quota{DayMicroUSD: 1000}}
		begin := func() (*limits.Ticket, limits.Exceeded) {
			ticket := admit(t, limiter, newSubject(), tenants.Quota{RequestsPerMinute: 10})
			exceeded, _ := errors.AsType[limits.Exceeded](limiter.Join(t.Context(), ticket, user))
			return ticket, exceeded
		}
		first, exceeded := begin()
		if exceeded.Kind != limits.None || first.Take(t.Context(), 0, 0, 1000) != nil {
			t.Fatalf("the first: %+v", exceeded)
		}
		second, _ := begin()
		if exceeded, _ := errors.AsType[limits.Exceeded](second.Take(t.Context(), 0, 0, 1)); exceeded.Kind != limits.HeldBudget || exceeded.Subject != user.Subject {
			t.Errorf("while the first is under way: %+v", exceeded)
		}
		first.Settle(t.Context(), 0, 1000)
		third, exceeded := begin()
		if exceeded.Kind != limits.DayBudget || exceeded.Subject != user.Subject {
			t.Errorf("with the budget used up: %+v", exceeded)
		}
		second.Settle(t.Context(), 0, 0)
		third.Settle(t.Context(), 0, 0)
	})
}

// Of several subjects each counts, and the one whose limit is met is named.
func TestEveryBudgetOfARequestHolds(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, _ *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		key, other := newSubject(), newSubject()
		other.Workspace = key.Workspace
		workspace := limits.Held{Subject: limits.Subject{Workspace: key.Workspace, Spender: tenants.Spender{Kind: tenants.WorkspaceSpends}}, Quota: tenants.Quota{DayMicroUSD: 1000}}
		project := limits.Held{Subject: limits.Subject{Workspace: key.Workspace, Spender: tenants.Spender{Kind: tenants.ProjectSpends, ID: "a"}}, Quota: tenants.Quota{MonthMicroUSD: 500}}
		first, err := limiter.Admit(t.Context(), limits.Held{Subject: key, Quota: tenants.Quota{RequestsPerMinute: 10}}, project, workspace)
		if err == nil {
			err = first.Take(t.Context(), 10, 10, 500)
		}
		if err != nil {
			t.Fatal(err)
		}
		if left := first.Left(); left.RequestsPerMinute != 9 {
			t.Errorf("of its key %+v is left", left)
		}
		second, err := limiter.Admit(t.Context(), limits.Held{Subject: other}, project, workspace)
		if err != nil {
			t.Fatal(err)
		}
		exceeded, _ := errors.AsType[limits.Exceeded](second.Take(t.Context(), 10, 10, 1))
		if exceeded.Kind != limits.HeldBudget || exceeded.Subject != project.Subject {
			t.Errorf("while the first is under way: %+v", exceeded)
		}
		first.Settle(t.Context(), 0, 500)
		_, err = limiter.Admit(t.Context(), limits.Held{Subject: other}, project, workspace)
		if exceeded, _ := errors.AsType[limits.Exceeded](err); exceeded.Kind != limits.MonthBudget || exceeded.Subject != project.Subject {
			t.Errorf("after it: %v", err)
		}
		third, err := limiter.Admit(t.Context(), limits.Held{Subject: other}, workspace)
		if err != nil || third.Take(t.Context(), 0, 0, 1) != nil {
			t.Fatalf("outside the project: %v", err)
		}
		third.Settle(t.Context(), 0, 500)
		_, err = limiter.Admit(t.Context(), limits.Held{Subject: key, Quota: tenants.Quota{Concurrency: 5}}, workspace)
		if exceeded, _ := errors.AsType[limits.Exceeded](err); exceeded.Kind != limits.DayBudget || exceeded.Subject != workspace.Subject {
			t.Errorf("with the workspace's used up: %v", err)
		}
	})
}

// S47: the tokens that answers may have are held while a request is under way.
func TestTokensOfAnswersAreHeld(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, _ *bundle, limiter *limits.Limiter, _ bool) {
		t.Helper()
		subject, quota := newSubject(), tenants.Quota{TokensPerMinute: 1000}
		first, second := admit(t, limiter, subject, quota), admit(t, limiter, subject, quota)
		if err := first.Take(t.Context(), 100, 5000, 0); err != nil {
			t.Fatalf("the only one: %v", err)
		}
		if exceeded, _ := errors.AsType[limits.Exceeded](second.Take(t.Context(), 100, 10, 0)); exceeded.Kind != limits.Tokens {
			t.Errorf("while it is under way: %s", exceeded.Kind)
		}
		first.Settle(t.Context(), 200, 0)
		if err := second.Take(t.Context(), 700, 10, 0); err != nil {
			t.Errorf("after it: %v", err)
		}
		second.Settle(t.Context(), 700, 0)
	})
}
