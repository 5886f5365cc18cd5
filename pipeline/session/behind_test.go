package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// watchedStore is a store that counts how often it is looked at, and can fail.
type watchedStore struct {
	*session.Memory

	looks     atomic.Int64
	fails     atomic.Bool
	readsFail atomic.Bool  // of lanes as a whole
	takes     atomic.Int64 // nanoseconds to answer each question
}

// wait takes the time that the store takes.
func (s *watchedStore) wait(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(s.takes.Load())):
		return nil
	case <-ctx.Done():
		return errors.Join(errAway, ctx.Err())
	}
}

var errAway = fmt.Errorf("%w: as the test has it", session.ErrAway)

// Stands implements session.Store.
func (s *watchedStore) Stands(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (session.Standing, error) {
	s.looks.Add(1)
	if s.fails.Load() {
		return session.Standing{}, errAway
	}
	if err := s.wait(ctx); err != nil {
		return session.Standing{}, err
	}
	return s.Memory.Stands(ctx, workspace, heads)
}

// Find implements session.Store.
func (s *watchedStore) Find(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (session.Found, error) {
	if s.fails.Load() || s.readsFail.Load() {
		return session.Found{}, errAway
	}
	if err := s.wait(ctx); err != nil {
		return session.Found{}, err
	}
	return s.Memory.Find(ctx, workspace, heads)
}

// Announce implements session.Store.
func (s *watchedStore) Announce(ctx context.Context, workspace tenants.WorkspaceID, updates []session.Update) error {
	if s.fails.Load() {
		return errAway
	}
	return s.Memory.Announce(ctx, workspace, updates)
}

// watched returns a bundle whose store is watched.
func watched(t *testing.T) (*bundle, *watchedStore) {
	t.Helper()
	b := setup(t)
	store := &watchedStore{Memory: b.store}
	b.resolver = replicaOn(t, store, false)
	return b, store
}

// replicaOn returns a resolver on a store that works, where shared says so, beside others.
func replicaOn(t *testing.T, store session.Store, shared bool) *session.Resolver {
	t.Helper()
	resolver, err := session.NewResolver(store)
	if err != nil {
		t.Fatal(err)
	}
	if shared {
		announcer := session.NewAnnouncer(store.Announce, session.NewOutage(time.Now), nil)
		t.Cleanup(announcer.Stop)
		resolver.Share(announcer, nil)
	}
	return resolver
}

// pair returns two bundles, each with a resolver of its own on one store.
func pair(t *testing.T) (one, two *bundle, store *watchedStore) {
	t.Helper()
	one, store = watched(t)
	one.resolver = replicaOn(t, store, true)
	two = &bundle{store: one.store, scope: one.scope, resolver: replicaOn(t, store, true)}
	return one, two, store
}

// say sends a request and tells other replicas of it, as the proxy does before its answer.
func (b *bundle) say(t *testing.T, hint session.Hint, words string) *session.Lane {
	t.Helper()
	lane, chain := b.hold(t, hint, words)
	seen := lane.Place(b.scope, time.Now())
	seen.Messages.Position, seen.Messages.Head = len(chain)-1, chain[len(chain)-1]
	lane.Unlock()
	b.resolver.Announce(seen).Wait(t.Context())
	return lane
}

// A request that goes to another replica right behind its answer finds its lane, though
// nothing has been recorded: with a name of the client's own and without.
func TestNextReplicaFindsTheLaneBeforeItIsRecorded(t *testing.T) {
	t.Parallel()
	for name, hint := range map[string]session.Hint{"named": {Name: "run", Source: "header"}, "by content": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two, _ := pair(t)
			first := one.say(t, hint, "a")
			second := two.say(t, hint, "a B c")
			third := one.say(t, hint, "a B c D e")
			if second.ID != first.ID || third.ID != first.ID || second.Session != first.Session {
				t.Errorf("lanes %s, %s, %s of sessions %s, %s", first.ID, second.ID, third.ID, first.Session, second.Session)
			}
			if fork := two.say(t, hint, "a B other"); fork.Ancestry.Parent != first.ID || fork.Ancestry.ForkAt != 2 && fork.Ancestry.ForkAt != 1 {
				t.Errorf("a history that leaves is a fork of %s at %d", fork.Ancestry.Parent, fork.Ancestry.ForkAt)
			}
		})
	}
}

// Of requests that open the same lane at two replicas at once, both open one lane.
func TestReplicasGiveALaneTheSameName(t *testing.T) {
	t.Parallel()
	one, two, _ := pair(t)
	hint := session.Hint{Name: "run", Source: "header"}
	here, _ := one.hold(t, hint, "a")
	there, _ := two.hold(t, hint, "a")
	here.Unlock()
	there.Unlock()
	if here.ID != there.ID || here.Session != there.Session {
		t.Errorf("lanes %s and %s", here.ID, there.ID)
	}
	other, _ := two.hold(t, session.Hint{Name: "another", Source: "header"}, "a")
	other.Unlock()
	if other.ID == here.ID {
		t.Error("another session's lane has the same name")
	}
}

// A replica that served a lane before sees what another one has made of it since.
func TestReplicaCatchesUpWithWhatAnotherHasMade(t *testing.T) {
	t.Parallel()
	one, two, store := pair(t)
	hint := session.Hint{}
	lane := one.say(t, hint, "a")
	two.say(t, hint, "a B c")
	made := two.epoch(t, "a B c D e", 2)
	looks := store.looks.Load()
	again, chain := one.hold(t, hint, "a B c D e F g")
	defer again.Unlock()
	if again != lane {
		t.Fatalf("lane %s, want %s", again.ID, lane.ID)
	}
	if projection := again.Projection(chain); projection == nil || projection.Number != made.Number {
		t.Errorf("projection %+v, want number %d", projection, made.Number)
	}
	if store.looks.Load() != looks+1 {
		t.Errorf("the store was looked at %d times", store.looks.Load()-looks)
	}
}

// While the store is away no answer waits for an announcement, but one that it takes all the
// same is found: a question that took too long does not split sessions.
func TestAnnouncementIsWrittenThoughNoAnswerWaitsForIt(t *testing.T) {
	t.Parallel()
	one, two, store := pair(t)
	outage := session.NewOutage(time.Now)
	outage.Note(errAway)
	announcer := session.NewAnnouncer(store.Announce, outage, nil)
	one.resolver.Share(announcer, nil)
	first := one.say(t, session.Hint{}, "a")
	announcer.Stop() // has written it
	if second := two.say(t, session.Hint{}, "a B c"); second.ID != first.ID {
		t.Errorf("the session goes on in lane %s, want %s", second.ID, first.ID)
	}
}

// While one replica alone serves a lane nothing is asked, though others may.
func TestReplicaThatServesALaneAloneAsksNobody(t *testing.T) {
	t.Parallel()
	one, _, store := pair(t)
	for _, words := range []string{"a", "a B c", "a B c D e", "a B c D e"} {
		one.say(t, session.Hint{}, words)
	}
	if looks := store.looks.Load(); looks != 0 {
		t.Errorf("the store was looked at %d times", looks)
	}
}

// A slow store is waited for where a lane is known to have changed: without what others have
// compacted the prompt would lose the provider's cache. A lane that may have changed, of which
// a notice may have been missed, is used as it is.
func TestSlowStoreIsWaitedForWhereALaneHasChanged(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"it has changed": true, "it may have": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				one, two, store := pair(t)
				hint := session.Hint{}
				lane := one.say(t, hint, "a")
				made := two.epoch(t, "a B c", 1)
				store.takes.Store(int64(700 * time.Millisecond))
				if waits {
					one.resolver.Changed(lane.ID, made.Number)
				} else {
					one.resolver.Missed()
				}
				held, chain := one.hold(t, hint, "a B c D e")
				if projection := held.Projection(chain); held != lane || (projection != nil) != waits {
					t.Errorf("lane %s with projection %+v, want %s", held.ID, projection, lane.ID)
				}
				held.Unlock()
				synctest.Wait()
			})
		})
	}
}

// A lane is used as it is while the store fails, and is as the store has it once that
// answers again: nothing is forgotten for a notice that may have been missed.
func TestLaneIsUsedWhileTheStoreFails(t *testing.T) {
	t.Parallel()
	one, two, store := pair(t)
	now := time.Now()
	one.resolver.Heed(session.NewOutage(func() time.Time { return now }))
	hint := session.Hint{}
	lane := one.say(t, hint, "a")
	one.record(t, lane, session.Chain(one.scope, hint, history("a")))
	made := two.epoch(t, "a B c", 1)

	store.fails.Store(true)
	one.resolver.Missed()
	held, chain := one.hold(t, hint, "a B c D e")
	if held != lane || held.Projection(chain) != nil {
		t.Errorf("lane %s with projection %+v while the store fails, want %s as it was", held.ID, held.Projection(chain), lane.ID)
	}
	held.Unlock()

	store.fails.Store(false)
	now = now.Add(time.Minute)
	held, chain = one.hold(t, hint, "a B c D e F g")
	defer held.Unlock()
	if projection := held.Projection(chain); held != lane || projection == nil || projection.Number != made.Number {
		t.Errorf("lane %s with projection %+v once the store answers", held.ID, projection)
	}
}

// A replica that has heard how far others have come with a lane, and cannot ask where its
// history goes on, stays in the lane. A history that leaves what it has served itself is a fork.
func TestLaneThatWentOnElsewhereIsNotLeftWhileTheStoreFails(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"the first request fails", "the second is not asked"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two, store := pair(t)
			hint := session.Hint{}
			lane := one.say(t, hint, "a B c")
			two.epoch(t, "a B c D e", 3)
			two.say(t, hint, "a B c D e F g")
			store.readsFail.Store(true)
			if name == "the second is not asked" {
				one.resolver.Heed(session.NewOutage(time.Now))
				messages := history("a B c D e F g")
				if _, err := one.resolver.Preview(t.Context(), one.scope, messages, session.Chain(one.scope, hint, messages), ""); err != nil {
					t.Error(err)
				}
			}
			if next := one.say(t, hint, "a B c D e F g H i"); next.ID != lane.ID {
				t.Errorf("the session goes on in lane %s, a fork of %s at %d, want %s", next.ID, next.Ancestry.Parent, next.Ancestry.ForkAt, lane.ID)
			}
			if fork := one.say(t, hint, "a B c X"); fork.Ancestry.Parent != lane.ID || fork.Ancestry.ForkAt != 3 {
				t.Errorf("a history that leaves is lane %s, a fork of %s at %d", fork.ID, fork.Ancestry.Parent, fork.Ancestry.ForkAt)
			}
		})
	}
}

// Where replicas of the version before, which told nobody of their requests, have split a
// session, its requests go on in one lane, at every replica: the one that lies furthest
// along.
func TestLanesThatHaveSplitAreOneAgain(t *testing.T) {
	t.Parallel()
	one, two, _ := pair(t)
	hint := session.Hint{Name: "run", Source: "header"}
	for i, words := range []string{"a", "a B c", "a B c D e"} {
		chain := session.Chain(one.scope, hint, history(words))
		stray := session.Update{Scope: one.scope, Session: uuid.New(), Lane: uuid.New(), Naming: session.Naming{Name: "run"}, Messages: session.Messages{Position: len(chain) - 1, Head: chain[len(chain)-1]}}
		if err := one.store.Record(t.Context(), one.scope.Workspace, []session.Update{stray}); err != nil {
			t.Fatal(err)
		}
		if lane := one.say(t, hint, words); i == 0 && lane.ID == stray.Lane {
			continue
		}
	}
	last := two.say(t, hint, "a B c D e F g")
	if next := one.say(t, hint, "a B c D e F g H i"); next.ID != last.ID {
		t.Errorf("the session goes on in lanes %s and %s", last.ID, next.ID)
	}
	if next := two.say(t, hint, "a B c D e F g H i J k"); next.ID != last.ID {
		t.Errorf("the session goes on in lanes %s and %s", last.ID, next.ID)
	}
}

// A projection that is durable elsewhere until the store takes it stays the lane's, though
// the store is asked before it has it.
func TestProjectionThatTheStoreDoesNotHaveYetStays(t *testing.T) {
	t.Parallel()
	one, _, _ := pair(t)
	hint := session.Hint{}
	one.say(t, hint, "a")
	made := one.epoch(t, "a B c", 1)
	lane, chain := one.hold(t, hint, "a B c D e")
	kept := session.Projection{Number: made.Number + 1, Covers: 3, Chain: chain[3]}
	lane.Adopt(kept)
	lane.Unlock()

	one.resolver.Missed()
	again, chain := one.hold(t, hint, "a B c D e F g")
	defer again.Unlock()
	if projection := again.Projection(chain); again != lane || projection == nil || projection.Number != kept.Number {
		t.Errorf("projection %+v, want number %d", projection, kept.Number)
	}
}
