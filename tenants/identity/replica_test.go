package identity_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

// patience bounds how long a test waits for what must come.
const patience = 20 * time.Second

// S8: another replica hears of a revocation and refuses the key. The clock stands still:
// nothing that it remembers ends by its age.
func TestRevokedKeyIsRefusedOnEveryReplica(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	key, secret := b.createKey(t, principal, nil)
	replica, heard := b.replica(t)
	if _, err := replica.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	if err := b.DB.APIKeys.RevokeAPIKey(t.Context(), principal.Workspace.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	select {
	case <-heard:
	case <-time.After(patience):
		t.Fatal("the replica hears nothing")
	}
	if _, err := replica.Authenticate(t.Context(), secret); !errors.Is(err, tenants.ErrKeyRevoked) {
		t.Fatalf("after the revocation: %v, want ErrKeyRevoked", err)
	}
	t.Logf("refused after %s", time.Since(began))
}

// S8: with notifications cut, a revoked key is refused after half a minute.
func TestRevokedKeyIsRefusedWithoutTheNews(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	key, secret := b.createKey(t, principal, nil)
	if _, err := b.keys.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := b.DB.APIKeys.RevokeAPIKey(t.Context(), principal.Workspace.ID, key.ID); err != nil {
		t.Fatal(err)
	}

	b.clock.advance(29 * time.Second)
	if _, err := b.keys.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("within half a minute the key is served from memory: %v", err)
	}
	b.clock.advance(time.Second)
	if _, err := b.keys.Authenticate(t.Context(), secret); !errors.Is(err, tenants.ErrKeyRevoked) {
		t.Errorf("after half a minute: %v, want ErrKeyRevoked", err)
	}
}

// S9: a login that ended on one replica is refused on another within two seconds.
func TestEndedLoginIsRefusedOnEveryReplica(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, token := b.signUp(t, "ada@example.com")
	other, err := identity.NewService(storeOf(b.DB), nil, [][]byte{b.signing}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if err := b.service.LogOut(t.Context(), principal.Login); err != nil {
		t.Fatal(err)
	}
	b.clock.advance(2 * time.Second)
	if _, err := other.Authenticate(t.Context(), token); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Fatalf("two seconds later: %v, want ErrLoginEnded", err)
	}
}

// A look-up that began before a revocation was heard of must not outlive it.
func TestAnswerFromBeforeAChangeIsNotRemembered(t *testing.T) {
	t.Parallel()
	store := &slowStore{began: make(chan struct{}, 2), answer: make(chan tenants.APIKey)}
	keys, err := identity.NewKeys(store, [][]byte{make([]byte, 32)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	secret, _, _ := identity.GenerateKey()
	outcome := make(chan error)
	ask := func() { _, err := keys.Authenticate(t.Context(), secret); outcome <- err }

	go ask()
	<-store.began
	keys.Forget()
	store.answer <- tenants.APIKey{ID: uuid.New()}
	if err := <-outcome; err != nil {
		t.Fatal(err)
	}
	revoked := time.Now()
	go ask()
	select {
	case <-store.began:
	case err := <-outcome:
		t.Fatalf("answered %v from memory", err)
	}
	store.answer <- tenants.APIKey{ID: uuid.New(), APIKeyTimes: tenants.APIKeyTimes{RevokedAt: &revoked}}
	if err := <-outcome; !errors.Is(err, tenants.ErrKeyRevoked) {
		t.Errorf("after the change: %v, want ErrKeyRevoked", err)
	}
}

// S11: guesses sent all at once do not slip past the limit, and those who wait
// for a processor are bounded.
func TestParallelGuessesAreStoppedToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.signUp(t, "ada@example.com")

	const guesses = 150
	var wrong, refused atomic.Int32
	var group sync.WaitGroup
	for range guesses {
		group.Go(func() {
			switch _, _, err := b.service.LogIn(t.Context(), "ada@example.com", "wrong password", "192.0.2.1", "test"); {
			case errors.Is(err, tenants.ErrWrongLogin):
				wrong.Add(1)
			case errors.Is(err, tenants.ErrTooMany):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	// As many as run at once may have been let in when the tenth fails.
	if most := int32(10 + runtime.NumCPU() - 1); wrong.Load() < 10 || wrong.Load() > most || wrong.Load()+refused.Load() != guesses {
		t.Errorf("%d of %d guesses were compared, at most %d should be; %d were refused", wrong.Load(), guesses, most, refused.Load())
	}
}

// replica returns the keys of another replica; heard gets a value when it has
// been told of a change.
func (b *bundle) replica(t *testing.T) (keys *identity.Keys, heard <-chan struct{}) {
	t.Helper()
	keys, err := identity.NewKeys(b.DB.APIKeys, [][]byte{bytes.Repeat([]byte("p"), 32)}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{}, 10)
	listener := b.DB.NewListener(slog.New(slog.DiscardHandler))
	listener.Handle(tenantsdb.KeysChannel, func(workspace string) { keys.Changed(workspace); told <- struct{}{} }, keys.Forget)
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Stop)
	return keys, told
}

// slowStore answers when the test says so.
type slowStore struct {
	began  chan struct{}
	answer chan tenants.APIKey
}

func (s *slowStore) APIKeyByHash(context.Context, []byte) (tenants.APIKey, error) {
	s.began <- struct{}{}
	return <-s.answer, nil
}

func (*slowStore) TouchAPIKeys(context.Context, tenants.WorkspaceID, map[uuid.UUID]time.Time) error {
	return nil
}

func (*slowStore) RehashAPIKey(context.Context, tenants.WorkspaceID, uuid.UUID, []byte, []byte) error {
	return nil
}

// S8: changed limits and a rotation without grace hold on another replica as soon as it
// hears of them too.
func TestChangedKeyIsAnotherOnEveryReplica(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	key, secret := b.createKey(t, principal, nil)
	replica, heard := b.replica(t)
	if known, err := replica.Authenticate(t.Context(), secret); err != nil || known.Limits.Concurrency != 0 {
		t.Fatalf("%+v, %v", known, err)
	}
	hear := func() {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(patience):
			t.Fatal("the replica hears nothing")
		}
	}

	began := time.Now()
	key.Limits.Concurrency = 3
	if err := b.DB.APIKeys.ChangeAPIKey(t.Context(), principal.Workspace.ID, key); err != nil {
		t.Fatal(err)
	}
	hear()
	if known, err := replica.Authenticate(t.Context(), secret); err != nil || known.Limits.Concurrency != 3 {
		t.Errorf("after the change: %+v, %v", known.Limits, err)
	}
	rotation, renewed := b.keys.Renew(0)
	if err := b.DB.APIKeys.RotateAPIKey(t.Context(), principal.Workspace.ID, key.ID, rotation); err != nil {
		t.Fatal(err)
	}
	hear()
	if _, err := replica.Authenticate(t.Context(), secret); !errors.Is(err, tenants.ErrKeyExpired) {
		t.Errorf("the old secret: %v, want ErrKeyExpired", err)
	}
	if known, err := replica.Authenticate(t.Context(), renewed); err != nil || known.ID != key.ID {
		t.Errorf("the new secret: %+v, %v", known, err)
	}
	t.Logf("both took %s", time.Since(began))
}

// S8: with notifications cut, two replicas on one database refuse a revoked key after
// half a minute, and an old secret when its grace is over without any news.
func TestOldSecretEndsOnEveryReplicaWithoutTheNews(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	key, secret := b.createKey(t, principal, nil)
	other, err := identity.NewKeys(b.DB.APIKeys, [][]byte{bytes.Repeat([]byte("p"), 32)}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	replicas := []*identity.Keys{b.keys, other}
	rotation, renewed := b.keys.Renew(time.Minute)
	if err := b.DB.APIKeys.RotateAPIKey(t.Context(), principal.Workspace.ID, key.ID, rotation); err != nil {
		t.Fatal(err)
	}
	want := func(secret string, wanted error) {
		t.Helper()
		for i, replica := range replicas {
			if _, err := replica.Authenticate(t.Context(), secret); !errors.Is(err, wanted) {
				t.Errorf("replica %d: %v, want %v", i, err, wanted)
			}
		}
	}
	want(secret, nil)
	want(renewed, nil)
	b.clock.advance(59 * time.Second)
	want(secret, nil)
	b.clock.advance(time.Second)
	want(secret, tenants.ErrKeyExpired)
	want(renewed, nil)
	if err := b.DB.APIKeys.RevokeAPIKey(t.Context(), principal.Workspace.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	b.clock.advance(30 * time.Second)
	want(renewed, tenants.ErrKeyRevoked)
}

func (*slowStore) APIKey(context.Context, tenants.WorkspaceID, uuid.UUID) (tenants.APIKey, error) {
	return tenants.APIKey{}, tenants.ErrNotFound
}
