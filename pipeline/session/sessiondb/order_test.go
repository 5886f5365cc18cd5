package sessiondb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/session"
)

// B12, E12: an order is read with its lane, whose breaker it closes.
func TestAnOrderClosesTheBreaker(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(3)
	seen := c.seen()
	seen.Attempts = session.Attempts{At: time.Now().Add(-time.Minute).UTC(), Fruitless: session.Patience, Reason: "nothing_to_free", Size: 9, Limit: 10}
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Seen{seen}); err != nil {
		t.Fatal(err)
	}
	if found := c.find(t); !found.Attempts.IsOpen() || !found.Order.At.IsZero() {
		t.Fatalf("found %+v", found)
	}
	order := session.Order{At: time.Now().UTC().Truncate(time.Microsecond), By: uuid.New(), Instructions: "Keep the API."}
	if err := f.store.Ask(t.Context(), f.scope.Workspace, c.lane, order); err != nil {
		t.Fatal(err)
	}
	found := c.find(t)
	if found.Attempts.IsOpen() || found.Attempts.Reason != "" || !found.Order.At.Equal(order.At) || found.Order.By != order.By || found.Order.Instructions != order.Instructions {
		t.Errorf("found %+v", found)
	}
	// What a replica remembers from before does not open it again.
	seen = c.seen()
	seen.Attempts = session.Attempts{At: order.At.Add(-time.Second), Fruitless: session.Patience}
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Seen{seen}); err != nil {
		t.Fatal(err)
	}
	if c.find(t).Attempts.IsOpen() {
		t.Error("an older attempt opened the breaker again")
	}
	if err := f.store.Ask(t.Context(), addWorkspace(t, f.door), c.lane, order); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("asked by another workspace: %v", err)
	}
}
