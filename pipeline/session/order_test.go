package session_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// ordered is a store with an order and pins for every lane.
type ordered struct{ *session.Memory }

func (o ordered) Find(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (session.Found, error) {
	found, err := o.Memory.Find(ctx, workspace, heads)
	found.Order = session.Order{At: noon(), Instructions: "Keep the API."}
	found.Pins, found.Pinned = []int{1, 3}, true
	return found, err
}

// orderedLane returns a lane that was read from such a store.
func orderedLane(t *testing.T) *session.Lane {
	t.Helper()
	b := setup(t)
	b.send(t, session.Hint{}, "a B c")
	resolver, err := session.NewResolver(ordered{b.store})
	if err != nil {
		t.Fatal(err)
	}
	b.resolver = resolver
	lane, _ := b.hold(t, session.Hint{}, "a B c D e")
	t.Cleanup(lane.Unlock)
	return lane
}

// E12: an order waits until an epoch carries it out or an attempt comes to nothing.
func TestAnOrderWaitsForOneAttempt(t *testing.T) {
	t.Parallel()
	lane := orderedLane(t)
	if order := lane.Order(); order == nil || order.Instructions != "Keep the API." {
		t.Fatalf("order %+v", order)
	}
	lane.Tried(session.Attempts{At: noon().Add(-time.Minute)})
	if lane.Order() == nil {
		t.Error("an earlier attempt ended it")
	}
	lane.Tried(session.Attempts{At: noon().Add(time.Minute), Reason: "nothing_to_free"})
	if lane.Order() != nil {
		t.Error("it outlives the attempt")
	}

	lane = orderedLane(t)
	lane.Adopt(session.Projection{Number: 1, At: noon().Add(time.Second)})
	if lane.Order() != nil {
		t.Error("it outlives the epoch")
	}
}

// E12: a fork has the pins of the messages that it shares.
func TestAForkKeepsThePinsThatItShares(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.send(t, session.Hint{}, "a B c")
	b.send(t, session.Hint{}, "a B c D e")
	resolver, err := session.NewResolver(ordered{b.store})
	if err != nil {
		t.Fatal(err)
	}
	b.resolver = resolver
	lane, _ := b.hold(t, session.Hint{}, "a B c D e F g")
	if pins := lane.Pins(); !slices.Equal(pins, []int{1, 3}) || !lane.Pinned() {
		t.Errorf("pins %v, want 1 and 3, and the session", pins)
	}
	lane.Unlock()
	fork, _ := b.hold(t, session.Hint{}, "a B c D e X y")
	defer fork.Unlock()
	if pins := fork.Pins(); !slices.Equal(pins, []int{1, 3}) || !fork.Pinned() {
		t.Errorf("the fork's pins %v", pins)
	}
	earlier, _ := b.hold(t, session.Hint{}, "a B c X y")
	defer earlier.Unlock()
	if pins := earlier.Pins(); !slices.Equal(pins, []int{1}) {
		t.Errorf("pins of a fork before the second one: %v", pins)
	}
}
