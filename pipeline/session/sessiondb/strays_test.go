package sessiondb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
)

// rewound returns a client as a process knows it that has seen only the first messages of c: it
// goes on from them in the same lane with messages of its own.
func (c *client) rewound(messages int, texts ...string) *client {
	other := *c
	other.messages, other.chain, other.recorded = slices.Clone(c.messages[:messages]), slices.Clone(c.chain[:messages+1]), messages
	for _, text := range texts {
		other.say(fmt.Sprintf(`{"role":"user","content":"%s of %s"}`, text, c.lane))
	}
	return &other
}

// stored records what the client has added and returns it as it was stored.
func (c *client) stored(t *testing.T, more ...session.Update) []session.Update {
	t.Helper()
	seen := append([]session.Update{c.update()}, more...)
	if err := c.f.store.Record(t.Context(), c.f.scope.Workspace, seen); err != nil {
		t.Fatal(err)
	}
	return seen
}

// whole fails the test unless a lane holds the client's messages, each as it was sent.
func (c *client) whole(t *testing.T, lane uuid.UUID) {
	t.Helper()
	entries, err := c.f.archive.Entries(t.Context(), c.f.scope.Workspace, lane, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(c.messages) {
		t.Errorf("lane %s has %d messages, want %d", lane, len(entries), len(c.messages))
		return
	}
	for i := range entries {
		original, err := c.f.archive.Original(t.Context(), c.f.scope.Workspace, lane, i)
		if err != nil || string(original.Raw) != string(c.messages[i]) {
			t.Errorf("lane %s, message %d: %q, %v; want %q", lane, i, original.Raw, err, c.messages[i])
		}
	}
}

// A process that has not heard of a lane's newest messages puts others in their place: they
// are a fork, with the request that brought them, its answer, and those that continue it.
func TestExchangeThatLeavesItsLaneIsStoredInAFork(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(4)
	c.commit(t, c.projection(1, 2))
	c.say("five", "six")
	c.record(t)
	c.commit(t, c.projection(2, 5))

	behind := c.rewound(4, "five, edited")
	answer := behind.rewound(5)
	stored := behind.stored(t, answer.update())
	fork := stored[0].Lane
	if fork == c.lane || stored[1].Lane != fork || stored[0].Parent != c.lane || stored[0].ForkAt != 4 {
		t.Fatalf("the request is stored in lane %s, a fork of %s at %d, its answer in %s; the lane is %s",
			fork, stored[0].Parent, stored[0].ForkAt, stored[1].Lane, c.lane)
	}
	behind.say("six, edited")
	behind.stored(t) // still as of the lane that was left
	behind.say("seven")
	later := behind.stored(t)
	if later[0].Lane != fork {
		t.Errorf("a request that continues the fork is stored in %s, want %s", later[0].Lane, fork)
	}
	behind.whole(t, fork)
	c.whole(t, c.lane)
	if found := behind.find(t); found.Lane != fork || len(found.Projections) != 1 || found.Projections[0].Number != 1 {
		t.Errorf("the edited history is found in lane %s with %d projections, want %s with the one it shares", found.Lane, len(found.Projections), fork)
	}
	if found := c.find(t); found.Lane != c.lane || len(found.Projections) != 2 {
		t.Errorf("the first history is found in lane %s with %d projections, want %s with 2", found.Lane, len(found.Projections), c.lane)
	}
}

// Two processes that are behind fork from each other's forks as well.
func TestForkIsLeftAsALaneIs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(3)
	c.record(t)
	one := c.rewound(2, "three, edited")
	first := one.stored(t)[0].Lane
	two := one.rewound(3, "four")
	third := one.rewound(3, "four, edited")
	if lane := two.stored(t)[0].Lane; lane != first {
		t.Errorf("the fork goes on in lane %s, want %s", lane, first)
	}
	lane := third.stored(t)[0].Lane
	if lane == first || lane == c.lane {
		t.Errorf("a history that leaves the fork is stored in lane %s", lane)
	}
	c.whole(t, c.lane)
	two.whole(t, first)
	third.whole(t, lane)
}

// Neither a compaction nor an insert of a history that has left its lane becomes the lane's.
func TestExchangeThatLeavesItsLaneChangesNothingOfIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	c.record(t)
	behind := c.rewound(4, "five, edited")
	err := f.store.Commit(t.Context(), behind.update(), behind.projection(1, 5))
	if !errors.Is(err, session.ErrOvertaken) {
		t.Errorf("a compaction: %v", err)
	}
	behind = c.rewound(4, "five, edited")
	err = f.store.Inject(t.Context(), behind.update(), []session.Insert{behind.insert(1, 4, "a note")})
	if !errors.Is(err, session.ErrOvertaken) {
		t.Errorf("an insert: %v", err)
	}
	if found := c.find(t); len(found.Projections) > 0 || len(found.Inserts) > 0 {
		t.Errorf("the lane has %d projections and %d inserts", len(found.Projections), len(found.Inserts))
	}
	if epochs, inserts, lanes := f.count(t, "epochs"), f.count(t, "lane_inserts"), f.count(t, "lanes"); epochs+inserts > 0 || lanes != 1 {
		t.Errorf("%d epochs, %d inserts, %d lanes are stored", epochs, inserts, lanes)
	}
}

// Replicas write in any order: a lane whose later messages are recorded first is still one, and
// so is one that is handed over a second time.
func TestLaneRecordedOutOfOrderStaysOne(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(2)
	first := c.update()
	c.say("three", "four")
	later := c.rewound(2)
	later.messages, later.chain = c.messages, c.chain
	again := c.rewound(0)
	again.messages, again.chain = c.messages, c.chain
	for _, seen := range []session.Update{later.update(), first, again.update()} {
		one := []session.Update{seen}
		if err := f.store.Record(t.Context(), f.scope.Workspace, one); err != nil {
			t.Fatal(err)
		}
		if one[0].Lane != c.lane {
			t.Errorf("messages from %d on are stored in lane %s, want %s", seen.First(), one[0].Lane, c.lane)
		}
	}
	c.whole(t, c.lane)
}

// The end of a request that has left its lane is not announced as the lane's, so that nobody
// forks from what the lane does not hold.
func TestExchangeThatLeavesItsLaneIsNotAnnounced(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(5)
	c.record(t)
	behind := c.rewound(4, "five, edited")
	if err := f.store.Announce(t.Context(), f.scope.Workspace, []session.Update{behind.update()}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Stands(t.Context(), f.scope.Workspace, behind.chain[5:]); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the end of the edited history: %v", err)
	}
}

// An announcement, which answers wait for, does not wait for a recorder that is at the same lane.
func TestAnnouncementWaitsForNoRecorder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(2)
	c.record(t)
	c.say("three")
	recorded := c.update()
	c.say("four", "five")
	announced := c.update()
	err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
		tenant, err := batchdb.Tenant(tx)
		if err != nil {
			return err
		}
		if err := f.store.Record(t.Context(), tenant, []session.Update{recorded}); err != nil {
			return err
		}
		if err := tx.Exec("SELECT").Error; err != nil { // sends what waits
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a deadlock is an error, too
		defer cancel()
		return f.store.Announce(ctx, f.scope.Workspace, []session.Update{announced})
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := c.find(t); found.Lane != c.lane || found.Match != 5 {
		t.Errorf("found lane %s and %d messages, want %s and 5", found.Lane, found.Match, c.lane)
	}
}

// A message that is sent again with another cache marker is the same message: where ends of
// requests show that, its other bytes do not make a fork.
func TestMessageSentAgainWithOtherBytesIsNoFork(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(2)
	c.record(t)
	c.say("three", "four", "five")
	c.record(t)
	again := c.rewound(0)
	again.messages = slices.Clone(c.messages[:3])
	again.messages[0] = []byte(`{"role":"user","content":"marked"}`)
	again.chain = c.chain[:4]
	if lane := again.stored(t)[0].Lane; lane != c.lane {
		t.Errorf("the request is stored in lane %s, want %s", lane, c.lane)
	}
	c.whole(t, c.lane)
}
