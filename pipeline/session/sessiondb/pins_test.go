package sessiondb_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

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

// E12: no lane of a pinned session gets an epoch that no one asked for after the pin, not even a lane that
// was opened since and that its process has not read.
func TestPinnedSessionTakesNoEpochWithoutAnOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	workspace, browser := f.scope.Workspace, f.store.Browser()
	c := f.conversationOf(6)
	c.record(t)
	asked := session.Order{At: time.Now().Add(-time.Hour), By: uuid.New()}
	if err := browser.Ask(t.Context(), workspace, c.lane, asked); err != nil { // before the pin
		t.Fatal(err)
	}
	for range 2 {
		if err := browser.PinSession(t.Context(), workspace, c.session, uuid.New()); err != nil {
			t.Fatal(err)
		}
	}
	if !c.find(t).Pinned {
		t.Error("the lane is read without the pin")
	}
	if err := f.store.Commit(t.Context(), c.update(), c.projection(1, 4)); !errors.Is(err, session.ErrPinned) {
		t.Errorf("an epoch of a pinned session: %v", err)
	}
	detail, err := browser.Session(tenants.OwnWork(t.Context()), workspace, c.session)
	if err != nil || detail.PinnedAt.IsZero() {
		t.Errorf("pinned at %s, %v", detail.PinnedAt, err)
	}

	asked.At = time.Now().Add(time.Hour)
	if err := browser.Ask(t.Context(), workspace, c.lane, asked); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Commit(t.Context(), c.update(), c.projection(1, 4)); err != nil {
		t.Errorf("an epoch that was asked for: %v", err)
	}
	if err := browser.UnpinSession(t.Context(), workspace, c.session); err != nil || c.find(t).Pinned {
		t.Errorf("released: %v", err)
	}

	other := addWorkspace(t, f.runner)
	if err := browser.PinSession(t.Context(), other, c.session, uuid.New()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("pinned by another workspace: %v", err)
	}
	if err := browser.UnpinSession(t.Context(), workspace, c.session); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("released twice: %v", err)
	}
}
