package session_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// slow is a store that answers when it is told to.
type slow struct {
	*session.Memory

	asked  atomic.Int32
	answer chan struct{}
}

func (s *slow) Find(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (session.Found, error) {
	s.asked.Add(1)
	<-s.answer
	return s.Memory.Find(ctx, workspace, heads)
}

// atOnce resolves so many requests at once and returns their lanes.
func atOnce(t *testing.T, resolver *session.Resolver, scope session.Scope, words string, requests int, meanwhile func()) []uuid.UUID {
	t.Helper()
	messages := history(words)
	lanes := make([]uuid.UUID, requests)
	var held sync.Mutex
	var group sync.WaitGroup
	for i := range requests {
		group.Go(func() {
			lane, _, err := resolver.Resolve(t.Context(), scope, session.Hint{}, messages, session.Chain(scope, session.Hint{}, messages))
			if err != nil {
				t.Error(err)
				return
			}
			defer lane.Unlock()
			lanes[i] = lane.ID
			if !held.TryLock() {
				t.Error("two requests hold their lane at once")
				return
			}
			defer held.Unlock()
		})
	}
	meanwhile()
	group.Wait()
	return lanes
}

// wantOne fails a test unless all lanes are the same.
func wantOne(t *testing.T, lanes []uuid.UUID) {
	t.Helper()
	for _, lane := range lanes {
		if lane != lanes[0] {
			t.Fatalf("lanes %s: want one", lanes)
		}
	}
}

// E10: requests that come at once with a history that nothing is known of open one lane.
func TestRequestsThatComeAtOnceOpenOneLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Memory: session.NewMemory(), answer: make(chan struct{})}
		resolver, err := session.NewResolver(store)
		if err != nil {
			t.Fatal(err)
		}
		wantOne(t, atOnce(t, resolver, session.Scope{Workspace: tenants.NewWorkspaceID()}, "a B c D e", 8, func() {
			synctest.Wait()
			if asked := store.asked.Load(); asked != 1 {
				t.Errorf("the store was asked %d times for one history", asked)
			}
			close(store.answer)
		}))
	})
}

// E10: a request that has waited in vain for a lane that another one opens, or holds, goes
// on without one; so does a count.
func TestWhoWaitsTooLongForALaneIsTold(t *testing.T) {
	t.Parallel()
	scope, messages := session.Scope{Workspace: tenants.NewWorkspaceID()}, history("a B c")
	chain := session.Chain(scope, session.Hint{}, messages)
	inVain := func(t *testing.T, resolver *session.Resolver) {
		t.Helper()
		short, cancel := context.WithCancel(t.Context())
		cancel()
		if lane, _, err := resolver.Resolve(short, scope, session.Hint{}, messages, chain); lane != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("lane %v, error %v", lane, err)
		}
	}
	t.Run("that is being opened", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store := &slow{Memory: session.NewMemory(), answer: make(chan struct{})}
			resolver, err := session.NewResolver(store)
			if err != nil {
				t.Fatal(err)
			}
			atOnce(t, resolver, scope, "a B c", 1, func() {
				synctest.Wait()
				inVain(t, resolver)
				close(store.answer)
			})
		})
	})
	t.Run("that is held", func(t *testing.T) {
		t.Parallel()
		resolver, err := session.NewResolver(session.NewMemory())
		if err != nil {
			t.Fatal(err)
		}
		held, _, err := resolver.Resolve(t.Context(), scope, session.Hint{}, messages, chain)
		if err != nil {
			t.Fatal(err)
		}
		inVain(t, resolver)
		short, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := resolver.Preview(short, scope, messages, chain, "m"); !errors.Is(err, context.Canceled) {
			t.Errorf("a count: error %v", err)
		}
		held.Unlock()
		if lane, _, err := resolver.Resolve(t.Context(), scope, session.Hint{}, messages, chain); err != nil || lane != held {
			t.Errorf("once it is free: lane %v, error %v", lane, err)
		}
	})
}

// E10: of concurrent requests of a lane one decides at a time, and those that bring the
// same go on from where it stands then.
func TestConcurrentRequestsHoldTheLaneInTurn(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{"they go on": "a B c D e", "they leave": "a B other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				b.send(t, session.Hint{}, "a B c")
				held, _ := b.hold(t, session.Hint{}, "a B c")
				lanes := atOnce(t, b.resolver, b.scope, words, 16, func() {
					synctest.Wait() // they all wait for the lane
					held.Unlock()
				})
				wantOne(t, lanes)
				if name == "they go on" && lanes[0] != held.ID {
					t.Fatalf("lane %s, want %s", lanes[0], held.ID)
				}
			})
		})
	}
}

// S8: news of a lane is heard while a request holds it, and so is what comes after: a
// revoked key. The lane's next request looks at the store.
func TestNewsOfALaneDoesNotWaitForWhoHoldsIt(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*session.Resolver, uuid.UUID){
		"an epoch":  func(r *session.Resolver, lane uuid.UUID) { r.Changed(lane, 1) },
		"an insert": func(r *session.Resolver, lane uuid.UUID) { r.InsertsChanged(lane, 1) },
		"a summary": func(r *session.Resolver, lane uuid.UUID) { r.SummaryChanged(lane, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, store := watched(t)
				held, _ := b.hold(t, session.Hint{}, "a B c")
				tell(b.resolver, held.ID)
				held.Unlock()
				synctest.Wait()
				looks := store.looks.Load()
				again, _ := b.hold(t, session.Hint{}, "a B c D e")
				again.Unlock()
				if again != held || store.looks.Load() == looks {
					t.Error("the lane is not looked at in the store")
				}
			})
		})
	}
}
