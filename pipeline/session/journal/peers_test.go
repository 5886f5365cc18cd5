package journal_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"palimpsest/api/redistest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/journal"
	"palimpsest/tenants"
)

// replicas returns the journals of two processes that have one Redis server, and stop, which ends
// that. Their stores are away.
func replicas(t *testing.T) (one, two *bench, client *redis.Client, stop func()) {
	t.Helper()
	address, stop := redistest.Start(t)
	client = redis.NewClient(&redis.Options{Addr: address, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	for _, b := range []**bench{&one, &two} {
		*b = setup(t)
		(*b).peers = journal.NewPeers(client, time.Now).Patient()
		(*b).restart()
		(*b).store.fails = session.ErrAway
	}
	return one, two, client, stop
}

// S5: what one process keeps for the store, others find: sealed, and only what is newer than what
// they have.
func TestEpochThatWaitsIsFoundByOtherProcesses(t *testing.T) {
	t.Parallel()
	one, two, client, _ := replicas(t)
	seen, projection := epoch(uuid.UUID{1}, 4)
	workspace := seen.Scope.Workspace
	if _, err := two.Newest(t.Context(), workspace, seen.Lane, 0); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("before there is one: %v", err)
	}
	if err := one.Commit(t.Context(), seen, projection); err != nil {
		t.Fatal(err)
	}
	if found, err := two.Newest(t.Context(), workspace, seen.Lane, 3); err != nil || !reflect.DeepEqual(found, projection) {
		t.Errorf("%+v, %v", found, err)
	}
	for _, have := range []int{4, 5} {
		if _, err := two.Newest(t.Context(), workspace, seen.Lane, have); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("with epoch %d: %v", have, err)
		}
	}
	keys := client.Keys(t.Context(), "*").Val()
	if len(keys) != 1 || client.TTL(t.Context(), keys[0]).Val() <= 0 {
		t.Fatalf("Redis has %v", keys)
	}
	text := client.HGet(t.Context(), keys[0], "epoch").Val()
	if text == "" || strings.Contains(text, secret[:8]) {
		t.Errorf("Redis has %q", text)
	}
	// It is the epoch of its lane and number, and of no other that has it in its place.
	other := uuid.UUID{2}
	for lane, number := range map[uuid.UUID]int{other: 4, seen.Lane: 5} {
		client.HSet(t.Context(), strings.ReplaceAll(keys[0], seen.Lane.String(), lane.String()), "number", number, "epoch", text)
		if found, err := two.Newest(t.Context(), workspace, lane, 0); err == nil || errors.Is(err, session.ErrNotFound) {
			t.Errorf("at lane %s as number %d: %+v, %v", lane, number, found, err)
		}
	}
}

// Of two processes that make the same epoch at once, both use that which was offered first.
func TestFirstOfTwoEpochsThatWaitIsThatOfAllProcesses(t *testing.T) {
	t.Parallel()
	one, two, _, _ := replicas(t)
	seen, first := epoch(uuid.UUID{1}, 4)
	_, second := epoch(uuid.UUID{1}, 4)
	second.Reason = "limit"
	if err := errors.Join(two.Commit(t.Context(), seen, first), one.Commit(t.Context(), seen, second)); err != nil {
		t.Fatal(err)
	}
	if found, err := one.Newest(t.Context(), seen.Scope.Workspace, seen.Lane, 4); err != nil || found.Reason != first.Reason {
		t.Errorf("%+v, %v", found, err)
	}
}

// What the store has is shown as well, for a process that does not reach it just then, and in place
// of what waits with its number. It is not kept here.
func TestEpochThatIsStoredIsFoundByOtherProcesses(t *testing.T) {
	t.Parallel()
	one, two, client, _ := replicas(t)
	seen, waits := epoch(uuid.UUID{1}, 4)
	if err := one.Commit(t.Context(), seen, waits); err != nil {
		t.Fatal(err)
	}
	_, stored := epoch(uuid.UUID{1}, 4)
	stored.Reason = "limit"
	two.store.fails = nil
	if err := two.Commit(t.Context(), seen, stored); err != nil || len(two.files()) != 0 {
		t.Fatalf("%v, files %v", err, two.files())
	}
	if found, err := one.Newest(t.Context(), seen.Scope.Workspace, seen.Lane, 4); err != nil || found.Reason != stored.Reason {
		t.Errorf("%+v, %v", found, err)
	}
	key := client.Keys(t.Context(), "*").Val()[0]
	if kept := client.TTL(t.Context(), key).Val(); kept <= 0 || kept > time.Minute {
		t.Errorf("it is kept for %s", kept)
	}
	_, older := epoch(uuid.UUID{1}, 3)
	if err := two.Commit(t.Context(), seen, older); err != nil {
		t.Fatal(err)
	}
	if found, err := one.Newest(t.Context(), seen.Scope.Workspace, seen.Lane, 4); err != nil || found.Number != 4 {
		t.Errorf("after an older one: %+v, %v", found, err)
	}
}

// Without Redis an epoch is kept all the same.
func TestEpochIsKeptWithoutRedis(t *testing.T) {
	t.Parallel()
	one, _, _, stop := replicas(t)
	stop()
	if err := one.commit(uuid.UUID{1}, 4); err != nil || len(one.files()) != 1 {
		t.Errorf("%v, files %v", err, one.files())
	}
	if _, err := one.Newest(t.Context(), tenants.WorkspaceID{7}, uuid.UUID{1}, 0); !errors.Is(err, session.ErrAway) {
		t.Errorf("the newest: %v", err)
	}
}
