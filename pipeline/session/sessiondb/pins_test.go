package sessiondb_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// E12: who reads a lane has its pins, with those that it shares with the lane it
// forked from.
func TestPinsAreReadWithTheirLane(t *testing.T) {
	t.Parallel()
	f := setup(t)
	workspace, by := f.scope.Workspace, uuid.New()
	parent := f.conversationOf(9)
	parent.record(t)
	for _, message := range []int{7, 2, 2} {
		if err := f.store.Browser().Pin(t.Context(), workspace, session.Pin{Lane: parent.lane, Message: message, By: by}); err != nil {
			t.Fatal(err)
		}
	}
	if got := parent.find(t).Pins; !reflect.DeepEqual(got, []int{2, 7}) {
		t.Errorf("pins are %v, want 2 and 7", got)
	}

	fork := &client{f: f, session: parent.session, lane: uuid.New(), messages: parent.messages[:5:5], chain: parent.chain[:6:6]}
	fork.say("another way")
	seen := fork.update()
	seen.Parent, seen.ForkAt = parent.lane, 5
	if err := f.store.Record(t.Context(), workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	if got := fork.find(t).Pins; !reflect.DeepEqual(got, []int{2}) {
		t.Errorf("the fork's pins are %v, want what it shares", got)
	}
	pins, err := f.store.Browser().Pins(t.Context(), workspace, fork.lane)
	if err != nil || len(pins) != 1 || pins[0].Lane != parent.lane || pins[0].By != by || pins[0].At.IsZero() {
		t.Errorf("pins are %+v, %v", pins, err)
	}

	if err := f.store.Browser().Unpin(t.Context(), workspace, parent.lane, 2); err != nil {
		t.Fatal(err)
	}
	if got := parent.find(t).Pins; !reflect.DeepEqual(got, []int{7}) {
		t.Errorf("pins are %v, want 7", got)
	}
}

// S2: another workspace pins nothing, and nobody pins what is not there.
func TestOnlyMessagesOfTheWorkspaceArePinned(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(3)
	c.record(t)
	other := addWorkspace(t, f.runner)
	for name, pin := range map[string]struct {
		workspace tenants.WorkspaceID
		message   int
	}{"another workspace": {other, 1}, "behind the end": {f.scope.Workspace, 3}} {
		err := f.store.Browser().Pin(t.Context(), pin.workspace, session.Pin{Lane: c.lane, Message: pin.message, By: uuid.New()})
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.store.Browser().Unpin(t.Context(), other, c.lane, 1); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("unpinned by another workspace: %v", err)
	}
}
