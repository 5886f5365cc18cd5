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
	"palimpsest/pipeline/conversation"
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

// newest returns the epoch that others show a process which has the fourth.
func (b *bench) newest(update session.Update) session.Projection {
	b.t.Helper()
	shown, err := b.Shown(b.t.Context(), update.Scope.Workspace, update.Lane, 4)
	if err != nil || shown.Projection == nil {
		b.t.Fatalf("no epoch is shown: %v", err)
	}
	return *shown.Projection
}

// S5: what one process keeps for the store, others find: sealed, and only what is newer than what
// they have.
func TestEpochThatWaitsIsFoundByOtherProcesses(t *testing.T) {
	t.Parallel()
	one, two, client, _ := replicas(t)
	seen, projection := epoch(uuid.UUID{1}, 4)
	workspace := seen.Scope.Workspace
	if shown, err := two.Shown(t.Context(), workspace, seen.Lane, 0); err != nil || shown.Projection != nil {
		t.Errorf("before there is one: %+v, %v", shown, err)
	}
	if err := one.Commit(t.Context(), seen, projection); err != nil {
		t.Fatal(err)
	}
	if shown, err := two.Shown(t.Context(), workspace, seen.Lane, 3); err != nil || !reflect.DeepEqual(shown.Projection, &projection) {
		t.Errorf("%+v, %v", shown.Projection, err)
	}
	for _, have := range []int{4, 5} {
		if shown, err := two.Shown(t.Context(), workspace, seen.Lane, have); err != nil || shown.Projection != nil {
			t.Errorf("with epoch %d: %+v, %v", have, shown.Projection, err)
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
		if shown, err := two.Shown(t.Context(), workspace, lane, 0); err == nil {
			t.Errorf("at lane %s as number %d: %+v", lane, number, shown.Projection)
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
	if found := one.newest(seen); found.Reason != first.Reason {
		t.Errorf("%+v", found)
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
	if found := one.newest(seen); found.Reason != stored.Reason {
		t.Errorf("%+v", found)
	}
	key := client.Keys(t.Context(), "*").Val()[0]
	if kept := client.TTL(t.Context(), key).Val(); kept <= 0 || kept > time.Minute {
		t.Errorf("it is kept for %s", kept)
	}
	_, older := epoch(uuid.UUID{1}, 3)
	if err := two.Commit(t.Context(), seen, older); err != nil {
		t.Fatal(err)
	}
	if found := one.newest(seen); found.Number != 4 {
		t.Errorf("after an older one: %+v", found)
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
	seen, _ := epoch(uuid.UUID{1}, 4)
	if err := one.Inject(t.Context(), seen, []session.Insert{{Number: 1}}); err != nil {
		t.Errorf("an insert: %v", err)
	}
	if _, err := one.Shown(t.Context(), tenants.WorkspaceID{7}, uuid.UUID{1}, 0); !errors.Is(err, session.ErrAway) {
		t.Errorf("what others show: %v", err)
	}
}

// Inserts that the store has taken are shown to other processes, sealed, the newest of a lane and for a
// while; those that were withdrawn are not.
func TestInsertsAreFoundByOtherProcesses(t *testing.T) {
	t.Parallel()
	one, two, client, _ := replicas(t)
	seen, _ := epoch(uuid.UUID{1}, 4)
	workspace := seen.Scope.Workspace
	shown := func() (numbers []int) {
		t.Helper()
		found, err := two.Shown(t.Context(), workspace, seen.Lane, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, insert := range found.Inserts {
			numbers = append(numbers, insert.Number)
			if want := insertOf(insert.Number); !reflect.DeepEqual(insert, want) {
				t.Errorf("%+v, want %+v", insert, want)
			}
		}
		return numbers
	}
	for number := 1; number <= 39; number += 2 {
		if err := one.Inject(t.Context(), seen, []session.Insert{insertOf(number), insertOf(number + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := shown(); len(got) != 32 || got[0] != 9 || got[31] != 40 {
		t.Errorf("shown are %v", got)
	}
	keys := client.Keys(t.Context(), "*").Val()
	if len(keys) != 1 || client.TTL(t.Context(), keys[0]).Val() <= 0 {
		t.Fatalf("Redis has %v", keys)
	}
	text := client.HGet(t.Context(), keys[0], "40").Val()
	if text == "" || strings.Contains(text, secret[:8]) {
		t.Errorf("Redis has %q", text)
	}
	if err := one.Withdraw(t.Context(), workspace, seen.Lane, 39); err != nil {
		t.Fatal(err)
	}
	if got := shown(); len(got) != 30 || got[29] != 38 {
		t.Errorf("after some were withdrawn: %v", got)
	}
	client.HSet(t.Context(), keys[0], "39", text) // one is not another that has it in its place
	if found, err := two.Shown(t.Context(), workspace, seen.Lane, 0); err == nil {
		t.Errorf("in another's place: %+v", found.Inserts)
	}
	one.store.refuses = session.ErrOvertaken
	other := seen
	other.Lane = uuid.UUID{2}
	if err := one.Inject(t.Context(), other, []session.Insert{insertOf(1)}); !errors.Is(err, session.ErrOvertaken) {
		t.Errorf("one that the store refuses: %v", err)
	}
	if found, err := two.Shown(t.Context(), workspace, other.Lane, 0); err != nil || len(found.Inserts) != 0 {
		t.Errorf("one that the store has refused is shown: %+v, %v", found.Inserts, err)
	}
}

func insertOf(number int) session.Insert {
	return session.Insert{Number: number, Message: 2, Chain: conversation.Hash{byte(number)}, Module: "rehydrator", Text: secret, Tokens: -3, Items: []string{"§1"}}
}
