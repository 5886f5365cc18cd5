package tenantsdb_test

import (
	"crypto/rand"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// full are limits of every kind.
func full(t *testing.T) tenants.Limits {
	t.Helper()
	networks, err := tenants.ParseAddresses([]string{"10.0.0.0/8", "2001:db8::1"})
	if err != nil {
		t.Fatal(err)
	}
	return tenants.Limits{
		Models: []string{"claude-*"}, Endpoints: []string{"/v1/messages"}, Addresses: networks, LockOverrides: true, NoStore: true, PrivateBaseURL: new(true),
		Quota: tenants.Quota{RequestsPerMinute: 1, TokensPerMinute: 2, Concurrency: 3, DayMicroUSD: 4, MonthMicroUSD: 5, AllowUnpriced: true},
	}
}

func TestKeysLimitsAreKeptAndChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, hash := b.addKey(t, b.workspace)
	_, other := b.signUp(t, "eve@example.com")
	expires := now().Add(time.Hour)
	wanted := key
	wanted.Name, wanted.Pipeline, wanted.ExpiresAt, wanted.Limits = "ci", "ipc: {}", &expires, full(t)
	if err := b.APIKeys.ChangeAPIKey(t.Context(), other, wanted); !errors.Is(err, tenants.ErrNotFound) {
		t.Fatalf("another workspace's key: %v, want ErrNotFound", err)
	}
	if err := b.APIKeys.ChangeAPIKey(t.Context(), b.workspace, wanted); err != nil {
		t.Fatal(err)
	}
	found, err := b.APIKeys.APIKeyByHash(t.Context(), hash)
	if err != nil || found.Name != "ci" || found.Pipeline != "ipc: {}" || !found.ExpiresAt.Equal(expires) || !reflect.DeepEqual(found.Limits, wanted.Limits) {
		t.Errorf("found %+v, %v", found, err)
	}
	created := key
	created.ID, created.Limits = uuid.Must(uuid.NewV7()), full(t)
	if err := b.APIKeys.CreateAPIKey(t.Context(), b.workspace, created, []byte("another hash")); err != nil {
		t.Fatal(err)
	}
	keys, err := b.APIKeys.APIKeys(tenants.OwnWork(t.Context()), b.workspace)
	if err != nil || !reflect.DeepEqual(keys[0].Limits, created.Limits) {
		t.Errorf("created %+v, %v", keys, err)
	}

	// S32: with what it was before and is after.
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 2})
	if err != nil || entries[1].Action != tenants.KeyChanged || entries[1].Before["name"] != "laptop" || entries[1].Before["concurrency"] != "" ||
		entries[1].After["name"] != "ci" || entries[1].After["concurrency"] != "3" || entries[1].After["no_store"] != "yes" || entries[1].After["private_base_url"] != "yes" {
		t.Errorf("noted %+v, %v", entries, err)
	}
	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	var invalid tenants.Invalid
	if err := b.APIKeys.ChangeAPIKey(t.Context(), b.workspace, wanted); !errors.As(err, &invalid) {
		t.Errorf("a revoked key: %v", err)
	}
}

func TestRotatedKeyIsFoundByBothSecretsUntilTheGraceIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, oldest := b.addKey(t, b.workspace)
	newHash := func() []byte {
		hash := make([]byte, 32)
		_, _ = rand.Read(hash)
		return hash
	}
	second, third := newHash(), newHash()
	until := now().Add(time.Hour)
	if err := b.APIKeys.RotateAPIKey(t.Context(), b.workspace, key.ID, tenants.Rotation{Prefix: "plm_live_2n", Suffix: "2222", Hash: second, OldUntil: until}); err != nil {
		t.Fatal(err)
	}
	before, err := b.APIKeys.APIKeyByHash(t.Context(), oldest)
	if err != nil || before.ID != key.ID || before.ExpiresAt == nil || !before.ExpiresAt.Equal(until) {
		t.Errorf("by the old secret: %+v, %v", before, err)
	}
	after, err := b.APIKeys.APIKeyByHash(t.Context(), second)
	if err != nil || after.ID != key.ID || after.ExpiresAt != nil || after.Suffix != "2222" || !after.OldUntil.Equal(until) {
		t.Errorf("by the new secret: %+v, %v", after, err)
	}
	if err := b.APIKeys.RotateAPIKey(t.Context(), b.workspace, key.ID, tenants.Rotation{Prefix: "plm_live_3r", Suffix: "3333", Hash: third, OldUntil: until}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.APIKeys.APIKeyByHash(t.Context(), oldest); !errors.Is(err, tenants.ErrKeyUnknown) {
		t.Errorf("by the oldest secret: %v, want ErrKeyUnknown", err)
	}

	_, other := b.signUp(t, "eve@example.com")
	if err := b.APIKeys.RotateAPIKey(t.Context(), other, key.ID, tenants.Rotation{Hash: newHash()}); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("another workspace's key: %v", err)
	}
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 1})
	if err != nil || entries[0].Action != tenants.KeyRotated || entries[0].Before["key"] != "plm_live_2n…2222" || entries[0].After["key"] != "plm_live_3r…3333" || entries[0].After["old_secret_until"] == "" {
		t.Errorf("noted %+v, %v", entries, err)
	}
	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	for _, hash := range [][]byte{second, third} {
		if found, err := b.APIKeys.APIKeyByHash(t.Context(), hash); err != nil || found.RevokedAt == nil {
			t.Errorf("after the revocation: %+v, %v", found, err)
		}
	}
}

func TestSpendOfAKeyIsWhatItsExchangesCost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, _ := b.addKey(t, b.workspace)
	another, _ := b.addKey(t, b.workspace)
	at := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	exchange := func(key uuid.UUID, at time.Time, cost int64) tenants.Exchange {
		return tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), Workspace: b.workspace, At: at,
			Request: tenants.ExchangeRequest{APIKey: key},
			Answer:  tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic},
			Cost:    tenants.ExchangeCost{CostMicroUSD: cost},
		}
	}
	day, month := tenants.SpendSpan(at)
	if err := b.Exchanges.RecordExchanges(t.Context(), b.workspace, []tenants.Exchange{
		exchange(key.ID, at, 1), exchange(key.ID, day, 2), exchange(key.ID, day.Add(-time.Second), 4), exchange(key.ID, month, 8),
		exchange(key.ID, month.Add(-time.Second), 16), exchange(another.ID, at, 32),
	}); err != nil {
		t.Fatal(err)
	}
	spender := tenants.Spender{Kind: tenants.KeySpends, ID: key.ID.String()}
	inDay, inMonth, err := b.Data.Spend(t.Context(), b.workspace, spender, day, month)
	if err != nil || inDay != 3 || inMonth != 15 {
		t.Errorf("%d in the day, %d in the month, %v", inDay, inMonth, err)
	}
	_, other := b.signUp(t, "eve@example.com")
	if inDay, inMonth, err = b.Data.Spend(t.Context(), other, spender, day, month); err != nil || inDay+inMonth != 0 {
		t.Errorf("S5: another workspace sees %d and %d, %v", inDay, inMonth, err)
	}
}

func TestListSaysWhoCreatedAKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone, _ := b.addKey(t, b.workspace)
	mine, _ := b.addKey(t, b.workspace)
	b.disown(t, gone.ID, uuid.New())
	keys, err := b.APIKeys.APIKeys(tenants.OwnWork(t.Context()), b.workspace)
	if err != nil || len(keys) != 2 {
		t.Fatal(keys, err)
	}
	creators := map[uuid.UUID]string{}
	for _, key := range keys {
		creators[key.ID] = key.Creator
	}
	if creators[mine.ID] != "ada@example.com" || creators[gone.ID] != "" {
		t.Errorf("creators %v", creators)
	}
}
