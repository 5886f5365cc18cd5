package session_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/faulttest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// A session that a replica first sees while the store is away goes on in its own lane, so that
// what is recorded of it belongs where it should, and so that it can be compacted.
func TestSessionUnknownWhileTheStoreIsAwayStaysInItsLane(t *testing.T) {
	t.Parallel()
	one, two, store := pair(t)
	now := time.Now()
	two.resolver.Heed(session.NewOutage(func() time.Time { return now }))
	hint := session.Hint{Name: "run", Source: "header"}
	first := one.say(t, hint, "a")
	one.record(t, one.say(t, hint, "a B c"), session.Chain(one.scope, hint, history("a B c")))

	store.fails.Store(true)
	held, _ := two.hold(t, hint, "a B c D e")
	if held.ID != first.ID || held.Session != first.Session || !held.Assumed {
		t.Errorf("lane %s of session %s, assumed %t, want lane %s of session %s", held.ID, held.Session, held.Assumed, first.ID, first.Session)
	}
	held.Unlock()
	again, _ := two.hold(t, hint, "a B c D e F g")
	if again != held {
		t.Errorf("the next request opens lane %s, want %s", again.ID, held.ID)
	}
	again.Unlock()

	store.fails.Store(false)
	now = now.Add(time.Minute)
	back, _ := two.hold(t, hint, "a B c D e F g H i")
	defer back.Unlock()
	if back != held || back.Assumed || back.Archived() != 3 {
		t.Errorf("once the store answers: lane %s, assumed %t, %d messages archived", back.ID, back.Assumed, back.Archived())
	}
}

// Of a history without a session's name nobody can say which lane it is. It gets one all the same.
func TestNamelessHistoryUnknownWhileTheStoreIsAwayGetsALane(t *testing.T) {
	t.Parallel()
	_, two, store := pair(t)
	store.fails.Store(true)
	held, _ := two.hold(t, session.Hint{}, "a B c")
	held.Unlock()
	again, _ := two.hold(t, session.Hint{}, "a B c D e")
	defer again.Unlock()
	if again != held || !held.Assumed {
		t.Errorf("lanes %s and %s, assumed %t", held.ID, again.ID, held.Assumed)
	}
}

// Requests do not wait again for a store that was away a moment ago.
func TestUnknownSessionDoesNotWaitForAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	_, two, store := pair(t)
	outage := session.NewOutage(time.Now)
	two.resolver.Heed(outage)
	store.fails.Store(true)
	held, _ := two.hold(t, session.Hint{}, "a B c")
	held.Unlock()
	if !outage.Lasts() {
		t.Fatal("nobody learns that the store is away")
	}
	store.fails.Store(false)
	other, _ := two.hold(t, session.Hint{}, "x Y z")
	defer other.Unlock()
	if !other.Assumed {
		t.Error("the store was asked")
	}
}

// endsOf reads ends of lanes from a map.
type endsOf map[uuid.UUID][]session.End

// Ends returns the ends of a lane.
func (e endsOf) Ends(_ context.Context, _ tenants.WorkspaceID, lane uuid.UUID, most int) ([]session.End, error) {
	return e[lane][:min(most, len(e[lane]))], nil
}

// A lane that another replica has compacted is known here before its first request, also when the store
// is away by then: from a notice, or from what was compacted before this replica listened to any.
func TestCompactedLaneOfAnotherReplicaIsUsedWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for name, learn := range map[string]func(two *session.Resolver, made session.Active) error{
		"a notice": func(two *session.Resolver, made session.Active) error {
			two.Compacted(made.Workspace, made.Lane, made.Number)
			return nil
		},
		"a start": func(two *session.Resolver, made session.Active) error {
			gone := session.Active{Workspace: made.Workspace, Lane: uuid.New(), Number: 1}
			return two.ReadAhead(t.Context(), []session.Active{gone, made})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two, store := pair(t)
			ends := endsOf{}
			two.resolver.Share(session.NewAnnouncer(store.Announce, session.NewOutage(time.Now), nil), ends.Ends)
			hint := session.Hint{}
			lane := one.say(t, hint, "a B c")
			made := one.epoch(t, "a B c D e", 3)
			chain := session.Chain(one.scope, hint, history("a B c D e"))
			ends[lane.ID] = []session.End{{Head: chain[5], Position: 5}, {Head: chain[3], Position: 3}}

			if err := learn(two.resolver, session.Active{Workspace: one.scope.Workspace, Lane: lane.ID, Number: made.Number}); err != nil {
				t.Fatal(err)
			}
			faulttest.Until(t, "the lane is known", func() bool { return two.resolver.Known(lane.ID) != nil })
			store.fails.Store(true)
			for _, words := range []string{"a B c D e F g", "a B c D edited"} {
				held, chain := two.hold(t, hint, words)
				if projection := held.Projection(chain); projection == nil || projection.Number != made.Number {
					t.Errorf("%q: lane %s with projection %+v, want number %d of lane %s", words, held.ID, projection, made.Number, lane.ID)
				}
				held.Unlock()
			}
		})
	}
}

// A lane that is known here is read again if it was compacted while no notices came.
func TestKnownLaneIsReadAheadOnlyIfItWasCompacted(t *testing.T) {
	t.Parallel()
	one, two, store := pair(t)
	hint := session.Hint{}
	lane := one.say(t, hint, "a B c")
	two.say(t, hint, "a B c D e")
	made := one.epoch(t, "a B c D e F g", 3)
	active := []session.Active{{Workspace: one.scope.Workspace, Lane: lane.ID, Number: made.Number}}
	number := func() int {
		known := two.resolver.Known(lane.ID)
		if err := known.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer known.Unlock()
		return known.NextNumber() - 1
	}
	if err := two.resolver.ReadAhead(t.Context(), active); err != nil {
		t.Fatal(err)
	}
	faulttest.Until(t, "the epoch is known", func() bool { return number() == made.Number })
	store.fails.Store(true) // nothing is left to ask
	if err := two.resolver.ReadAhead(t.Context(), active); err != nil {
		t.Error(err)
	}
}

// Where the store is away no lane after the first is asked for.
func TestReadingAheadEndsWithTheStore(t *testing.T) {
	t.Parallel()
	_, two, store := pair(t)
	asked := 0
	two.resolver.Share(session.NewAnnouncer(store.Announce, session.NewOutage(time.Now), nil), func(context.Context, tenants.WorkspaceID, uuid.UUID, int) ([]session.End, error) {
		asked++
		return nil, errAway
	})
	err := two.resolver.ReadAhead(t.Context(), []session.Active{{Lane: uuid.New()}, {Lane: uuid.New()}})
	if !errors.Is(err, session.ErrAway) || asked != 1 {
		t.Errorf("%v after %d lanes", err, asked)
	}
}

// shows has other replicas show something of every lane.
func shows(shown session.Shown) func(context.Context, tenants.WorkspaceID, uuid.UUID, int) (session.Shown, error) {
	return func(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, have int) (session.Shown, error) {
		if shown.Projection != nil && shown.Projection.Number < have {
			shown.Projection = nil
		}
		return shown, nil
	}
}

// What another replica keeps for a store that is away is in the prompts of all.
func TestProjectionThatAnotherReplicaKeepsIsUsed(t *testing.T) {
	t.Parallel()
	one, two, store := pair(t)
	hint := session.Hint{Name: "run", Source: "header"}
	one.say(t, hint, "a B c")
	two.say(t, hint, "a B c D e")
	chain := session.Chain(two.scope, hint, history("a B c D e"))
	for _, resolver := range []*session.Resolver{one.resolver, two.resolver} {
		resolver.Consult(shows(session.Shown{Projection: &session.Projection{Number: 2, Covers: 3, Chain: chain[3]}}))
	}
	known, _ := two.hold(t, hint, "a B c D e")
	known.Adopt(session.Projection{Number: 2, Covers: 5, Chain: chain[5]}) // this replica has made its own
	known.Unlock()
	store.fails.Store(true)
	for name, b := range map[string]*bundle{"one that knows the session": one, "one that has made its own": two} {
		if b == two {
			b.resolver.Missed()
		}
		held, chain := b.hold(t, hint, "a B c D e F g")
		if projection := held.Projection(chain); projection == nil || projection.Covers != 3 || held.NextNumber() != 3 {
			t.Errorf("%s: projection %+v", name, projection)
		}
		held.Unlock()
	}
}

// What another replica has put into the prompt is there as well, unless something before it is missing.
func TestInsertsThatAnotherReplicaShowsAreUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ known, shown, want []int }{
		"all":             {nil, []int{1, 2}, []int{1, 2}},
		"newer ones":      {[]int{1}, []int{1, 2, 3}, []int{1, 2, 3}},
		"one is missing":  {[]int{1}, []int{3}, []int{1}},
		"none of them":    {[]int{1}, nil, []int{1}},
		"older ones only": {[]int{1, 2}, []int{1}, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, two, store := pair(t)
			hint := session.Hint{Name: "run", Source: "header"}
			lane := two.say(t, hint, "a B c")
			chain := session.Chain(two.scope, hint, history("a B c"))
			inserts := func(numbers []int) (all []session.Insert) {
				for _, number := range numbers {
					all = append(all, session.Insert{Number: number, Message: 2, Chain: chain[3]})
				}
				return all
			}
			lane.Keep(inserts(c.known))
			two.resolver.Consult(shows(session.Shown{Inserts: inserts(c.shown)}))
			store.fails.Store(true)
			held, longer := two.hold(t, hint, "a B c D e F g")
			defer held.Unlock()
			if got := held.Inserts(longer); !reflect.DeepEqual(got, inserts(c.want)) {
				t.Errorf("%+v, want the numbers %v", got, c.want)
			}
		})
	}
}
