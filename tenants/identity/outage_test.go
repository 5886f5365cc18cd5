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
	keys.Forget()
	if _, err := keys.Authenticate(t.Context(), revokedSecret); !errors.Is(err, tenants.ErrKeyRevoked) {
		t.Fatalf("revoked: %v", err)
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

var errOutage = errors.New("connection refused")

// outage is a store that can be down.
type outage struct {
	identity.KeyStore

	down   atomic.Bool
	stands atomic.Bool
	waited atomic.Int64 // how long a caller would wait for a store that stands still, in nanoseconds
}

func (o *outage) APIKeyByHash(ctx context.Context, hash []byte) (tenants.APIKey, error) {
	if o.down.Load() {
		return tenants.APIKey{}, errOutage
	}
	if o.stands.Load() {
		deadline, _ := ctx.Deadline()
		o.waited.Store(int64(time.Until(deadline)))
		<-ctx.Done()
		return tenants.APIKey{}, ctx.Err()
	}
	return o.KeyStore.APIKeyByHash(ctx, hash)
}

func (*outage) APIKey(context.Context, tenants.WorkspaceID, uuid.UUID) (tenants.APIKey, error) {
	return tenants.APIKey{}, tenants.ErrNotFound
}
