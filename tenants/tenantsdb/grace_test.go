package tenantsdb_test

import (
	"bytes"
	"testing"
	"time"

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
