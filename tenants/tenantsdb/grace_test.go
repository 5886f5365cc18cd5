package tenantsdb_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// S8: a secret that was rotated out ends with its grace, or with its key if that expires
// before.
func TestRotatedOutSecretEndsWithItsGraceOrItsKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, test := range map[string]struct{ expires, want time.Duration }{
		"key outlives the grace":    {7 * 24 * time.Hour, time.Hour},
		"grace outlives the key":    {time.Minute, time.Minute},
		"both end at the same time": {time.Hour, time.Hour},
	} {
		key, old := b.addKey(t, b.workspace)
		moment := now()
		expires := moment.Add(test.expires)
		wanted := key
		wanted.ExpiresAt = &expires
		if err := b.APIKeys.ChangeAPIKey(t.Context(), b.workspace, wanted); err != nil {
			t.Fatal(err)
		}
		fresh := bytes.Clone(old)
		fresh[0] ^= 1
		rotation := tenants.Rotation{Prefix: "plm_live_2n", Suffix: "2222", Hash: fresh, OldUntil: moment.Add(time.Hour)}
		if err := b.APIKeys.RotateAPIKey(t.Context(), b.workspace, key.ID, rotation); err != nil {
			t.Fatal(err)
		}
		for by, hash := range map[string][]byte{"old": old, "new": fresh} {
			want := moment.Add(test.want)
			if by == "new" {
				want = expires
			}
			found, err := b.APIKeys.APIKeyByHash(t.Context(), hash)
			if err != nil || found.ExpiresAt == nil || !found.ExpiresAt.Equal(want) {
				t.Errorf("%s, by the %s secret: expires %v (%v), want %v", name, by, found.ExpiresAt, err, want)
			}
		}
	}
}

// Behind a secret that was rotated out is the person who had the key then, behind the new one the person who rotated it.
func TestRotatedOutSecretHasTheRightsOfItsPerson(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.join(t, "admin@example.com", tenants.Admin)
	key := tenants.APIKey{
		ID: uuid.Must(uuid.NewV7()), Name: "ci", Prefix: "plm_live_ab", Suffix: "wxyz", Scopes: []tenants.Scope{tenants.ScopeProxy, tenants.ScopeManage},
		CreatedBy: admin.ID, APIKeyTimes: tenants.APIKeyTimes{CreatedAt: now()},
	}
	old, fresh := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 32)
	if err := b.APIKeys.CreateAPIKey(as(t, admin), b.workspace, key, old); err != nil {
		t.Fatal(err)
	}
	rotation := tenants.Rotation{Prefix: "plm_live_2n", Suffix: "2222", Hash: fresh, OldUntil: now().Add(time.Hour)}
	if err := b.APIKeys.RotateAPIKey(as(t, b.user), b.workspace, key.ID, rotation); err != nil {
		t.Fatal(err)
	}
	check := func(name string, hash []byte, person uuid.UUID, manages bool) {
		t.Helper()
		found, err := b.APIKeys.APIKeyByHash(t.Context(), hash)
		if err != nil || found.Person != person || slices.Contains(found.Scopes, tenants.ScopeManage) != manages {
			t.Errorf("%s: scopes %v of %s (%v), want those of %s", name, found.Scopes, found.Person, err, person)
		}
	}
	check("the old secret", old, admin.ID, true)
	check("the new secret", fresh, b.user.ID, true)
	if err := b.Workspaces.ChangeRole(as(t, b.user), b.workspace, admin.ID, tenants.Regular); err != nil {
		t.Fatal(err)
	}
	check("the old secret of a person who manages no more", old, admin.ID, false)
	check("the new secret thereafter", fresh, b.user.ID, true)
}

// S3, S8: a key that a replica still believes, and that has expired or was revoked meanwhile, makes
// no key and changes no member.
func TestKeyThatHasEndedMeanwhileDoesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"expired": "UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1",
		"revoked": "UPDATE api_keys SET revoked_at = now() WHERE id = $1",
		"no more": "UPDATE api_keys SET scopes = 'proxy' WHERE id = $1",
	} {
		b := setup(t)
		member := b.join(t, "grace@example.com", tenants.Viewer)
		key, _ := b.addKey(t, b.workspace)
		for _, statement := range []string{"UPDATE api_keys SET scopes = 'manage' WHERE id = $1", end} {
			if _, err := b.database.Owner(t).Exec(t.Context(), statement, key.ID); err != nil {
				t.Fatal(err)
			}
		}
		ctx := tenants.WithActor(t.Context(), tenants.Actor{APIKey: key.ID, Name: key.Name})
		made := key
		made.ID, made.Scopes, made.CreatedBy = uuid.Must(uuid.NewV7()), []tenants.Scope{tenants.ScopeRead}, key.ID
		if err := b.APIKeys.CreateAPIKey(ctx, b.workspace, made, bytes.Repeat([]byte{7}, 32)); !errors.Is(err, tenants.ErrDenied) {
			t.Errorf("%s: it makes a key: %v", name, err)
		}
		if err := b.Workspaces.ChangeRole(ctx, b.workspace, member.ID, tenants.Regular); !errors.Is(err, tenants.ErrDenied) {
			t.Errorf("%s: it changes a role: %v", name, err)
		}
	}
}
