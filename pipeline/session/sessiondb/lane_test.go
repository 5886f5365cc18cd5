package sessiondb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// warm returns the heat of a prompt that went out so long after noon.
func warm(after time.Duration) session.CacheState {
	return session.CacheState{At: noon().Add(after), TTL: session.LongTTL, Projection: 2, Position: 4, Tokens: 900, Model: "claude"}
}

func (c *client) recordAll(t *testing.T, updates ...session.Update) {
	t.Helper()
	if err := c.f.store.Record(t.Context(), c.f.scope.Workspace, updates); err != nil {
		t.Fatal(err)
	}
}

func sameHeat(a, b session.CacheState) bool {
	equal := a.At.Equal(b.At)
	a.At = b.At
	return equal && a == b
}

func sameAttempts(a, b session.Attempts) bool {
	equal := a.At.Equal(b.At)
	a.At = b.At
	return equal && a == b
}

// C7, B12: heat and attempts survive a restart, and of what replicas write in any
// order the newest stays.
func TestTheNewestHeatAndAttemptsOfALaneStay(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(4)
	c.record(t)
	if found := c.find(t); found.Heat != (session.CacheState{}) || found.Attempts != (session.Attempts{}) {
		t.Fatalf("of a lane that says nothing: %+v", found)
	}
	attempts := session.Attempts{At: noon().Add(time.Second), Fruitless: 3, Reason: "nothing_to_free", Size: 90, Limit: 100}

	with := func(heat session.CacheState, attempts session.Attempts) session.Update {
		seen := c.update()
		seen.Heat, seen.Attempts = heat, attempts
		return seen
	}
	earlier := session.Attempts{At: noon(), Fruitless: 1}
	c.recordAll(t, with(warm(time.Minute), earlier), with(warm(2*time.Minute), attempts), with(warm(0), session.Attempts{}))
	check := func(when string, heat session.CacheState, attempts session.Attempts) {
		t.Helper()
		if found := c.find(t); !sameHeat(found.Heat, heat) || !sameAttempts(found.Attempts, attempts) {
			t.Errorf("%s: %+v, %+v", when, found.Heat, found.Attempts)
		}
	}
	check("in one batch", warm(2*time.Minute), attempts)
	c.recordAll(t, with(warm(time.Minute), earlier))
	check("older ones", warm(2*time.Minute), attempts)
	c.recordAll(t, with(session.CacheState{}, session.Attempts{}))
	check("none", warm(2*time.Minute), attempts)
	changed := warm(2 * time.Minute)
	changed.Tokens = 950 // what the provider reported of the same prompt
	c.recordAll(t, with(changed, session.Attempts{}))
	check("the same prompt", changed, attempts)
	c.recordAll(t, with(session.CacheState{At: noon().Add(time.Hour), Model: "other"}, session.Attempts{}))
	check("without a cache", session.CacheState{At: noon().Add(time.Hour), Model: "other"}, attempts)
}

// C7: an epoch for a cold cache is refused if another replica has used the lane.
func TestAnEpochForAColdCacheIsRefusedWhereItIsWarm(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	c.record(t)
	projection := c.projection(1, 4)
	projection.Reason = session.ReasonIdle
	commit := func(at, usedAt time.Duration, ttl time.Duration, projection session.Projection) error {
		other := c.update()
		other.Heat = warm(usedAt)
		other.Heat.TTL = ttl
		c.recordAll(t, other)
		seen := c.update()
		seen.At, seen.Heat = noon().Add(at), warm(0)
		return f.store.Commit(t.Context(), seen, projection)
	}

	if err := commit(2*time.Hour, 90*time.Minute, session.LongTTL, projection); !errors.Is(err, session.ErrWarm) {
		t.Errorf("warm: %v", err)
	}
	if err := commit(3*time.Hour, 170*time.Minute, 0, projection); !errors.Is(err, session.ErrWarm) {
		t.Errorf("used elsewhere without a cache: %v", err)
	}
	if n := f.count(t, "epochs"); n != 0 {
		t.Fatalf("%d epochs", n)
	}
	if err := commit(5*time.Hour, 4*time.Hour, session.LongTTL, projection); err != nil {
		t.Errorf("cold: %v", err)
	}
	forced := c.projection(2, 5)
	if err := commit(6*time.Hour, 6*time.Hour, session.LongTTL, forced); err != nil {
		t.Errorf("for another reason: %v", err)
	}
}

func TestALaneThatIsNewToTheDatabaseIsCold(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	projection := c.projection(1, 4)
	projection.Reason = session.ReasonIdle
	c.commit(t, projection)
	if found := c.find(t); len(found.Projections) != 1 || found.Projections[0].Reason != session.ReasonIdle {
		t.Errorf("found %+v", found)
	}
}

// B12, E12: an order is read with its lane, whose breaker it closes for every replica.
func TestAnOrderReachesEveryReplica(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(4)
	seen := c.update()
	seen.Attempts = session.Attempts{At: noon(), Fruitless: 5, Reason: "nothing_to_free", Size: 9, Limit: 10}
	c.recordAll(t, seen)
	connection, err := pgx.Connect(t.Context(), f.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	if _, err := connection.Exec(t.Context(), "LISTEN "+sessiondb.Channel); err != nil {
		t.Fatal(err)
	}

	order := session.Order{At: noon().Add(time.Minute), By: uuid.New(), Instructions: "Keep the API."}
	if err := f.store.Browser().Ask(t.Context(), f.scope.Workspace, c.lane, order); err != nil {
		t.Fatal(err)
	}

	told, err := connection.WaitForNotification(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := f.scope.Workspace.String() + "/" + c.lane.String() + "/0"; told.Payload != want {
		t.Errorf("told %q, want %q", told.Payload, want)
	}
	c.recordAll(t, seen) // an exchange that began before
	found := c.find(t)
	if found.Attempts.IsOpen() || found.Attempts.Size != 0 {
		t.Errorf("attempts %+v", found.Attempts)
	}
	if !found.Order.At.Equal(order.At) || found.Order.By != order.By || found.Order.Instructions != order.Instructions {
		t.Errorf("order %+v", found.Order)
	}
	for name, of := range map[string]struct {
		workspace tenants.WorkspaceID
		lane      uuid.UUID
	}{
		"another lane": {f.scope.Workspace, uuid.New()}, "another workspace": {addWorkspace(t, f.runner), c.lane},
	} {
		if err := f.store.Browser().Ask(t.Context(), of.workspace, of.lane, order); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
