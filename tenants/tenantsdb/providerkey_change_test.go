package tenantsdb_test

import (
	"bytes"
	"errors"
	"net/http"
	"testing"
	"time"

	"palimpsest/tenants"
)

func TestChangedProviderKeyIsKeptInItsOrderWithOneDefault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.addProviderKey(t, b.workspace, tenants.ProviderOpenAI), b.addProviderKey(t, b.workspace, tenants.ProviderOpenAI)
	_, other := b.signUp(t, "eve@example.com")
	change := func(order int) func(tenants.ProviderKey) (tenants.ProviderKey, error) {
		return func(key tenants.ProviderKey) (tenants.ProviderKey, error) {
			key.Order, key.Default, key.Models, key.Disabled = order, true, []string{"gpt-*"}, true
			key.Headers, key.Auth, key.Both = []tenants.Header{{Name: "X-Title", Value: "a"}}, tenants.AuthAPIKey, true
			return key, nil
		}
	}

	if _, err := b.ProviderKeys.ChangeProviderKey(t.Context(), other, first.ID, tenants.ProviderKeyChanged, change(1)); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("another workspace's key: %v", err)
	}
	for i, key := range []tenants.ProviderKey{first, second} {
		if _, err := b.ProviderKeys.ChangeProviderKey(t.Context(), b.workspace, key.ID, tenants.ProviderKeyChanged, change(2-i)); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := b.ProviderKeys.ProviderKeys(t.Context(), b.workspace)
	if err != nil || keys[0].ID != second.ID || !keys[0].Default || keys[1].Default {
		t.Fatalf("keys %+v (%v)", keys, err)
	}
	if got := keys[0]; !got.Disabled || !got.Both || got.Auth != tenants.AuthAPIKey || len(got.Models) != 1 || got.Headers[0].Value != "a" || !bytes.Equal(got.Sealed, second.Sealed) {
		t.Errorf("key %+v", got)
	}
	refusal := errors.New("refused")
	if _, err := b.ProviderKeys.ChangeProviderKey(t.Context(), b.workspace, first.ID, tenants.ProviderKeyChanged, func(tenants.ProviderKey) (tenants.ProviderKey, error) {
		return tenants.ProviderKey{}, refusal
	}); !errors.Is(err, refusal) {
		t.Errorf("a change that fails: %v", err)
	}
}

// A refused key counts from the first refusal on that nothing good has followed.
func TestUseOfProviderKeysTellsSinceWhenTheyAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := b.addProviderKey(t, b.workspace, tenants.ProviderOpenAI)
	at := now()
	for i, status := range []int{http.StatusUnauthorized, http.StatusOK, http.StatusForbidden, http.StatusUnauthorized, http.StatusInternalServerError} {
		exchange := b.exchange(at.Add(time.Duration(i) * time.Second))
		exchange.Answer.ProviderKey, exchange.Answer.Status, exchange.Cost.CostMicroUSD, exchange.Answer.ErrorFrom = key.ID, status, 10, ""
		if status >= 400 {
			exchange.Answer.ErrorFrom, exchange.Answer.ErrorType = "provider", "error"
		}
		b.record(t, b.workspace, exchange)
	}
	use := func() tenants.ProviderKeyUse {
		uses, err := b.ProviderKeys.ProviderKeyUses(tenants.OwnWork(t.Context()), b.workspace, at.Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return uses[key.ID]
	}

	got := use()
	if got.Exchanges != 5 || got.CostMicroUSD != 50 || got.Rejected != 2 || !got.Since.Equal(at.Add(2*time.Second)) || got.LastStatus != 500 || !got.LastErrorAt.Equal(at.Add(4*time.Second)) {
		t.Errorf("use %+v", got)
	}
	if err := b.ProviderKeys.CheckedProviderKey(t.Context(), b.workspace, key.ID, tenants.ProviderKeyCheck{At: at.Add(time.Minute), OK: true, Status: 200}); err != nil {
		t.Fatal(err)
	}
	if after := use(); after.Rejected != 0 || after.Exchanges != 5 {
		t.Errorf("after a test that passed: %+v", after)
	}
}

// S15: a secret that was replaced meanwhile is not overwritten by its old self.
func TestResealedSecretDoesNotOverwriteNewerOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := b.addProviderKey(t, b.workspace, tenants.ProviderOpenAI)
	for _, step := range []struct{ old, want []byte }{{[]byte("something else"), key.Sealed}, {key.Sealed, []byte("made again")}} {
		if err := b.ProviderKeys.ResealProviderKey(t.Context(), b.workspace, key.ID, step.old, []byte("made again")); err != nil {
			t.Fatal(err)
		}
		keys, err := b.ProviderKeys.ProviderKeys(t.Context(), b.workspace)
		if err != nil || !bytes.Equal(keys[0].Sealed, step.want) {
			t.Errorf("%q (%v), want %q", keys[0].Sealed, err, step.want)
		}
	}
}
