package identity_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// W25: while the database does not answer, a key that was good stays good
// for ten minutes; one that nobody has seen does not become so.
func TestGoodKeysOutliveTheDatabaseForAWhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	_, secret := b.createKey(t, principal, nil)
	_, unseen := b.createKey(t, principal, nil)
	revoked, revokedSecret := b.createKey(t, principal, nil)
	store := &outage{KeyStore: b.DB.APIKeys}
	keys, err := identity.NewKeys(store, [][]byte{bytes.Repeat([]byte("p"), 32)}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []string{secret, revokedSecret} {
		if _, err := keys.Authenticate(t.Context(), known); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.DB.APIKeys.RevokeAPIKey(t.Context(), principal.Workspace.ID, revoked.ID); err != nil {
		t.Fatal(err)
	}
	keys.Changed(principal.Workspace.ID.String())
	if _, err := keys.Authenticate(t.Context(), revokedSecret); !errors.Is(err, tenants.ErrKeyRevoked) {
		t.Fatalf("revoked: %v", err)
	}
	if _, err := keys.Authenticate(t.Context(), secret); err != nil { // good since that change, too
		t.Fatal(err)
	}

	store.down.Store(true)
	for _, wait := range []time.Duration{0, time.Minute, 8 * time.Minute} {
		keys.Forget()
		b.clock.advance(wait)
		if _, err := keys.Authenticate(t.Context(), secret); err != nil {
			t.Errorf("%s on: %v", wait, err)
		}
		if _, err := keys.Authenticate(t.Context(), unseen); !errors.Is(err, errOutage) {
			t.Errorf("never seen: %v", err)
		}
		if _, err := keys.Authenticate(t.Context(), revokedSecret); err == nil {
			t.Error("a key that was revoked before is good again")
		}
	}
	b.clock.advance(2 * time.Minute)
	if _, err := keys.Authenticate(t.Context(), secret); !errors.Is(err, errOutage) {
		t.Errorf("after more than ten minutes: %v", err)
	}
	store.down.Store(false)
	if _, err := keys.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("once it is back: %v", err)
	}
}

// A key that was good waits only a moment for a database that stands still, and is not believed
// for long then.
func TestGoodKeyDoesNotWaitForDatabaseThatStandsStill(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	key, secret := b.createKey(t, principal, nil)
	store := &outage{KeyStore: b.DB.APIKeys}
	keys, err := identity.NewKeys(store, [][]byte{bytes.Repeat([]byte("p"), 32)}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	store.stands.Store(true)
	keys.Forget()
	if _, err := keys.Authenticate(t.Context(), secret); err != nil || store.waited.Load() > int64(time.Second) {
		t.Errorf("%v, waited for up to %s", err, time.Duration(store.waited.Load()))
	}
	store.stands.Store(false)
	if err := b.DB.APIKeys.RevokeAPIKey(t.Context(), principal.Workspace.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	b.clock.advance(6 * time.Second)
	if _, err := keys.Authenticate(t.Context(), secret); !errors.Is(err, tenants.ErrKeyRevoked) {
		t.Errorf("six seconds later: %v", err)
	}
}

// S8: a key of which a change was heard is not believed while the database stands still: the change may
// have ended it. Keys of others are.
func TestChangedKeyIsNotBelievedWithoutDatabase(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*bundle, tenants.Principal, tenants.APIKey) error{
		"revoked": func(b *bundle, who tenants.Principal, key tenants.APIKey) error {
			return b.DB.APIKeys.RevokeAPIKey(t.Context(), who.Workspace.ID, key.ID)
		},
		"workspace suspended": func(b *bundle, who tenants.Principal, _ tenants.APIKey) error {
			return b.DB.Operators.SuspendWorkspace(t.Context(), who.User.ID, who.Workspace.ID, "abuse")
		},
		"creator changed": func(b *bundle, who tenants.Principal, _ tenants.APIKey) error {
			return b.DB.Accounts.VerifyUser(t.Context(), who.User.ID)
		},
	} {
		for when, late := range map[string]bool{"before the read": false, "during the read": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				who, _ := b.signUp(t, "ada@example.com")
				elsewhere, _ := b.signUp(t, "grace@example.com")
				key, secret := b.createKey(t, who, nil)
				_, other := b.createKey(t, elsewhere, nil)
				store := &outage{KeyStore: b.DB.APIKeys}
				keys, err := identity.NewKeys(store, [][]byte{bytes.Repeat([]byte("p"), 32)}, b.clock.Now)
				if err != nil {
					t.Fatal(err)
				}
				for _, secret := range []string{secret, other} {
					if _, err := keys.Authenticate(t.Context(), secret); err != nil {
						t.Fatal(err)
					}
				}
				if err := end(b, who, key); err != nil {
					t.Fatal(err)
				}
				tell := func() { keys.Changed(who.Workspace.ID.String()) }
				if name == "creator changed" {
					tell = func() { keys.Changed(who.User.ID.String()) }
				}

				store.down.Store(true)
				if late {
					keys.Forget()
					store.asked = tell
				} else {
					tell()
				}
				if _, err := keys.Authenticate(t.Context(), secret); !errors.Is(err, errOutage) {
					t.Errorf("without the database: %v, want its failure", err)
				}
				if _, err := keys.Authenticate(t.Context(), other); err != nil {
					t.Errorf("another workspace: %v", err)
				}
				store.down.Store(false)
				if now, err := keys.Authenticate(t.Context(), secret); (err == nil) != (name == "creator changed") {
					t.Errorf("with the database again: %+v, %v", now, err)
				}
			})
		}
	}
}

// S8: a key that was read before a change is not good by that read once the database is away.
func TestKeyReadBeforeChangeIsNotBelievedLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	_, secret := b.createKey(t, principal, nil)
	store := &outage{KeyStore: b.DB.APIKeys}
	keys, err := identity.NewKeys(store, [][]byte{bytes.Repeat([]byte("p"), 32)}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	store.answered = func() { keys.Changed(principal.Workspace.ID.String()) }
	if _, err := keys.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	store.down.Store(true)
	if _, err := keys.Authenticate(t.Context(), secret); !errors.Is(err, errOutage) {
		t.Errorf("%v, want the failure of the database", err)
	}
}

var errOutage = errors.New("connection refused")

// outage is a store that can be down.
type outage struct {
	identity.KeyStore

	down     atomic.Bool
	stands   atomic.Bool
	asked    func()       // optional: runs when the store is asked, before it answers
	answered func()       // optional: runs when the store has read a key, before its answer is there
	waited   atomic.Int64 // how long a caller would wait for a store that stands still, in nanoseconds
}

func (o *outage) APIKeyByHash(ctx context.Context, hash []byte) (tenants.APIKey, error) {
	if o.asked != nil {
		o.asked()
	}
	if o.down.Load() {
		return tenants.APIKey{}, errOutage
	}
	if o.stands.Load() {
		deadline, _ := ctx.Deadline()
		o.waited.Store(int64(time.Until(deadline)))
		<-ctx.Done()
		return tenants.APIKey{}, ctx.Err()
	}
	if o.answered != nil {
		defer o.answered()
	}
	return o.KeyStore.APIKeyByHash(ctx, hash)
}

func (*outage) APIKey(context.Context, tenants.WorkspaceID, uuid.UUID) (tenants.APIKey, error) {
	return tenants.APIKey{}, tenants.ErrNotFound
}
