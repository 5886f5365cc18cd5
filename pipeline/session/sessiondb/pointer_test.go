package sessiondb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// pointTo returns a pointer to a message by the link after some.
func (c *client) pointTo(links, message int) archive.Pointer {
	return archive.Pointer{Name: archive.NameOf(c.chain[links]), From: message, To: message + 1}
}

func TestAPointerLeadsToTheLaneOfItsEpochOrRequest(t *testing.T) {
	t.Parallel()

	f := setup(t)
	c, other := f.conversationOf(8), f.conversationOf(5)
	c.commit(t, c.projection(1, 5))
	other.record(t)
	for name, pointer := range map[string]archive.Pointer{
		"the epoch": c.pointTo(5, 2), "the request": c.pointTo(8, 7), "the lane itself": {Lane: c.lane, From: 2},
	} {
		got, err := f.store.Browser().Named(t.Context(), f.scope.Workspace, tenants.Reader{All: true}, uuid.Nil, pointer)
		if err != nil || got != (session.Named{Session: c.session, Lane: c.lane, Format: conversation.Anthropic}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := f.store.Browser().Named(t.Context(), f.scope.Workspace, tenants.Reader{All: true}, other.session, archive.Pointer{From: 3}); err != nil || got.Lane != other.lane {
		t.Errorf("the session's: %+v, %v", got, err)
	}
	if _, err := f.store.Browser().Named(t.Context(), f.scope.Workspace, tenants.Reader{All: true}, uuid.Nil, c.pointTo(3, 2)); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a link that nobody was told: %v", err)
	}
}

// S5: another workspace's pointer, or another session's, leads nowhere.
func TestAPointerLeadsNowhereBeyondItsWorkspaceAndSession(t *testing.T) {
	t.Parallel()

	f := setup(t)
	stranger := addWorkspace(t, f.runner)
	c, other := f.conversationOf(8), f.conversationOf(5)
	c.commit(t, c.projection(1, 5))
	other.record(t)
	for name, pointer := range map[string]archive.Pointer{
		"a name": c.pointTo(5, 2), "a lane": {Lane: c.lane, From: 2}, "a message": {From: 2},
	} {
		within := uuid.Nil
		if pointer.Name == "" && pointer.Lane == uuid.Nil {
			within = c.session
		}
		if got, err := f.store.Browser().Named(t.Context(), stranger, tenants.Reader{All: true}, within, pointer); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s, another workspace: %+v, %v", name, got, err)
		}
		if within != uuid.Nil {
			continue
		}
		if got, err := f.store.Browser().Named(t.Context(), f.scope.Workspace, tenants.Reader{All: true}, other.session, pointer); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s, another session: %+v, %v", name, got, err)
		}
	}
	names, err := f.store.Browser().Names(t.Context(), stranger, []uuid.UUID{c.lane}, []int{1})
	if err != nil || names[0] != "" {
		t.Errorf("names for a stranger: %v, %v", names, err)
	}
	if _, err := f.store.Browser().SessionNamed(t.Context(), stranger, tenants.Reader{All: true}, "run-1"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a stranger finds a session by its name: %v", err)
	}
}

// A fork has its own messages behind the link that it shares.
func TestSharedLinkLeadsToTheNewerOfTwoForks(t *testing.T) {
	t.Parallel()

	f := setup(t)
	old := f.conversationOf(6)
	old.commit(t, old.projection(1, 4))
	fork := &client{f: f, session: old.session, lane: uuid.New(), messages: old.messages[:4:4], chain: old.chain[:5:5], recorded: 4}
	fork.say(`{"role":"user","content":"another way"}`)
	seen := fork.update()
	seen.Parent, seen.ForkAt, seen.Inherited, seen.At = old.lane, 4, 1, seen.At.Add(time.Minute)
	if err := f.store.Commit(t.Context(), seen, fork.projection(2, 5)); err != nil {
		t.Fatal(err)
	}
	for message, want := range map[int]uuid.UUID{3: old.lane} {
		if got, err := f.store.Browser().Named(t.Context(), f.scope.Workspace, tenants.Reader{All: true}, uuid.Nil, old.pointTo(4, message)); err != nil || got.Lane != want {
			t.Errorf("message %d: %+v, %v", message, got, err)
		}
	}
	if got, err := f.store.Browser().Named(t.Context(), f.scope.Workspace, tenants.Reader{All: true}, uuid.Nil, fork.pointTo(5, 4)); err != nil || got.Lane != fork.lane {
		t.Errorf("the fork's own: %+v, %v", got, err)
	}
}

func TestEachMessageHasANameThatLeadsBackToIt(t *testing.T) {
	t.Parallel()

	f := setup(t)
	c := f.conversationOf(8)
	c.commit(t, c.projection(1, 5))
	lanes, messages := []uuid.UUID{c.lane, c.lane, c.lane, uuid.New()}, []int{0, 6, 8, 0}
	names, err := f.store.Browser().Names(t.Context(), f.scope.Workspace, lanes, messages)
	if err != nil {
		t.Fatal(err)
	}
	if names[0] != archive.NameOf(c.chain[5]) || names[1] != archive.NameOf(c.chain[8]) || names[2] != "" || names[3] != "" {
		t.Errorf("names %v", names)
	}
	if id, err := f.store.Browser().SessionNamed(t.Context(), f.scope.Workspace, tenants.Reader{All: true}, "run-1"); err != nil || id != c.session {
		t.Errorf("session by its name: %s, %v", id, err)
	}
}

// The index on links must be usable under row-level security.
func TestTheRangeOfLinksIsLeakproof(t *testing.T) {
	t.Parallel()

	f := setup(t)
	var leaky int
	err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT count(*) FROM pg_proc WHERE proname IN ('byteage', 'byteale') AND NOT proleakproof").Scan(&leaky).Error
	})
	if err != nil || leaky != 0 {
		t.Errorf("%d operators leak, %v", leaky, err)
	}
}
