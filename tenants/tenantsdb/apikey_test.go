package tenantsdb_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestAPIKeyIsFoundByItsHash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, hash := b.addKey(t, b.workspace)
	b.addKey(t, b.workspace)

	found, err := b.APIKeys.APIKeyByHash(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	if found.ID != key.ID || found.Workspace != b.workspace || found.Name != "laptop" || found.Prefix != key.Prefix ||
		found.Suffix != key.Suffix || !slices.Equal(found.Scopes, key.Scopes) || !found.CreatedAt.Equal(key.CreatedAt) ||
		found.RevokedAt != nil || found.ExpiresAt != nil || found.LastUsedAt != nil {
		t.Fatalf("found %+v, want %+v", found, key)
	}
	if _, err := b.APIKeys.APIKeyByHash(t.Context(), make([]byte, 32)); !errors.Is(err, tenants.ErrKeyUnknown) {
		t.Fatalf("unknown hash: %v, want ErrKeyUnknown", err)
	}
}

func TestWorkspaceListsItsOwnAPIKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "eve@example.com")
	first, _ := b.addKey(t, b.workspace)
	second, _ := b.addKey(t, b.workspace)
	b.addKey(t, other)

	keys, err := b.APIKeys.APIKeys(tenants.OwnWork(t.Context()), b.workspace)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || keys[0].ID != second.ID || keys[1].ID != first.ID {
		t.Fatalf("keys %+v, want the newest first", keys)
	}
}

func TestRevokedAPIKeyStaysRevoked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "eve@example.com")
	key, hash := b.addKey(t, b.workspace)

	if err := b.APIKeys.RevokeAPIKey(t.Context(), other, key.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Fatalf("revoke another workspace's key: %v, want ErrNotFound", err)
	}
	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, uuid.New()); !errors.Is(err, tenants.ErrNotFound) {
		t.Fatalf("revoke an unknown key: %v, want ErrNotFound", err)
	}
	if found, err := b.APIKeys.APIKeyByHash(t.Context(), hash); err != nil || found.RevokedAt != nil {
		t.Fatalf("key is %+v (%v) before its revocation", found, err)
	}
	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	first, err := b.APIKeys.APIKeyByHash(t.Context(), hash)
	if err != nil || first.RevokedAt == nil {
		t.Fatalf("key is %+v (%v) after its revocation", first, err)
	}
	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	again, err := b.APIKeys.APIKeyByHash(t.Context(), hash)
	if err != nil || !again.RevokedAt.Equal(*first.RevokedAt) {
		t.Fatalf("the second revocation changed the time: %+v (%v)", again, err)
	}
}

func TestLastUseOfAPIKeysOnlyMovesForward(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "eve@example.com")
	first, _ := b.addKey(t, b.workspace)
	second, _ := b.addKey(t, b.workspace)
	foreign, foreignHash := b.addKey(t, other)
	at := now()

	for _, used := range []map[uuid.UUID]time.Time{
		{first.ID: at, second.ID: at.Add(-time.Hour), foreign.ID: at},
		{first.ID: at.Add(-time.Minute), second.ID: at.Add(time.Minute)},
		{},
	} {
		if err := b.APIKeys.TouchAPIKeys(t.Context(), b.workspace, used); err != nil {
			t.Fatal(err)
		}
	}

	keys, err := b.APIKeys.APIKeys(tenants.OwnWork(t.Context()), b.workspace)
	if err != nil {
		t.Fatal(err)
	}
	if !keys[1].LastUsedAt.Equal(at) || !keys[0].LastUsedAt.Equal(at.Add(time.Minute)) {
		t.Errorf("last used %v and %v", keys[1].LastUsedAt, keys[0].LastUsedAt)
	}
	if found, err := b.APIKeys.APIKeyByHash(t.Context(), foreignHash); err != nil || found.LastUsedAt != nil {
		t.Errorf("another workspace's key was touched: %+v (%v)", found, err)
	}
}

// The hashes of keys that were used or created since a time are listed, the latest first, both of a key whose
// secret was rotated, and none of a revoked key or of another workspace.
func TestAPIKeysInUseAreListed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "eve@example.com")
	created := time.Now()
	now := created.Add(3 * time.Hour)
	use := func(key tenants.APIKey, at time.Time) {
		t.Helper()
		if err := b.APIKeys.TouchAPIKeys(t.Context(), key.Workspace, map[uuid.UUID]time.Time{key.ID: at}); err != nil {
			t.Fatal(err)
		}
	}
	_, unusedHash := b.addKey(t, b.workspace)
	rests, _ := b.addKey(t, b.workspace)
	use(rests, now.Add(-2*time.Hour))
	revoked, _ := b.addKey(t, b.workspace)
	use(revoked, now)
	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, revoked.ID); err != nil {
		t.Fatal(err)
	}
	elsewhere, _ := b.addKey(t, other)
	use(elsewhere, now)
	first, firstHash := b.addKey(t, b.workspace)
	use(first, now.Add(-time.Minute))
	rotated, oldHash := b.addKey(t, b.workspace)
	use(rotated, now)
	newHash := bytes.Repeat([]byte{7}, len(oldHash))
	if err := b.APIKeys.RotateAPIKey(t.Context(), b.workspace, rotated.ID, tenants.Rotation{Prefix: rotated.Prefix, Suffix: rotated.Suffix, Hash: newHash, OldUntil: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}

	hashes, err := b.APIKeys.UsedAPIKeys(t.Context(), b.workspace, now.Add(-time.Hour), 10)
	want := [][]byte{newHash, oldHash, firstHash}
	if err != nil || !reflect.DeepEqual(hashes, want) {
		t.Errorf("%x, %v, want %x", hashes, err, want)
	}
	if hashes, err := b.APIKeys.UsedAPIKeys(t.Context(), b.workspace, now.Add(-time.Hour), 1); err != nil || len(hashes) != 1 {
		t.Errorf("of at most one: %x, %v", hashes, err)
	}
	hashes, err = b.APIKeys.UsedAPIKeys(t.Context(), b.workspace, created.Add(-time.Hour), 10)
	if err != nil || !slices.ContainsFunc(hashes, func(hash []byte) bool { return bytes.Equal(hash, unusedHash) }) {
		t.Errorf("%x, %v, want the key %x that was created since", hashes, err, unusedHash)
	}
}

// S49: a key takes connections and memory from the account of its workspace's first owner, however many own it.
func TestKeySaysWhoOwnsItsWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second := b.join(t, "second@example.com", tenants.Owner)
	member := b.join(t, "member@example.com", tenants.Regular)
	key, hash := b.addKey(t, b.workspace)
	b.disown(t, key.ID, member.ID)
	account := func(want uuid.UUID) {
		t.Helper()
		found, err := b.APIKeys.APIKeyByHash(t.Context(), hash)
		if err != nil || found.Account() != want {
			t.Errorf("the account is %s, want %s (%v)", found.Account(), want, err)
		}
	}
	account(b.user.ID)
	if err := b.Workspaces.LeaveWorkspace(as(t, b.user), b.user.ID, b.workspace, false); err != nil {
		t.Fatal(err)
	}
	account(second.ID)
}
