package tenantsdb_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestProviderKeysAreKeptSealedInTheOrderOfTheirCreation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "eve@example.com")
	first, second := b.addProviderKey(t, b.workspace, tenants.ProviderAnthropic), b.addProviderKey(t, b.workspace, tenants.ProviderOpenAI)
	b.addProviderKey(t, other, tenants.ProviderOpenAI)

	keys, err := b.ProviderKeys.ProviderKeys(t.Context(), b.workspace)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || keys[0].ID != first.ID || keys[1].ID != second.ID {
		t.Fatalf("keys %+v", keys)
	}
	if got := keys[0]; got.Provider != first.Provider || got.Name != first.Name || got.BaseURL != first.BaseURL ||
		got.Last4 != first.Last4 || !bytes.Equal(got.Sealed, first.Sealed) || got.CreatedBy != first.CreatedBy || got.Workspace != b.workspace {
		t.Errorf("key %+v, want %+v", got, first)
	}
}

func TestDeletedProviderKeyIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "eve@example.com")
	key := b.addProviderKey(t, b.workspace, tenants.ProviderAnthropic)

	if err := b.ProviderKeys.DeleteProviderKey(t.Context(), other, key.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Fatalf("delete another workspace's key: %v, want ErrNotFound", err)
	}
	if err := b.ProviderKeys.DeleteProviderKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	if keys, err := b.ProviderKeys.ProviderKeys(t.Context(), b.workspace); err != nil || len(keys) != 0 {
		t.Fatalf("keys %+v (%v)", keys, err)
	}
	if err := b.ProviderKeys.DeleteProviderKey(t.Context(), b.workspace, key.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Fatalf("delete it again: %v, want ErrNotFound", err)
	}
}

func (b bundle) addProviderKey(t *testing.T, workspace tenants.WorkspaceID, provider tenants.Provider) tenants.ProviderKey {
	t.Helper()
	key := tenants.ProviderKey{
		ID: uuid.Must(uuid.NewV7()), Workspace: workspace, Provider: provider, Name: "main", BaseURL: "https://example.com",
		ProviderKeySecret: tenants.ProviderKeySecret{Last4: "wxyz", Sealed: []byte{0, 1, 2, 255}}, CreatedBy: uuid.New(), CreatedAt: now(),
	}
	if err := b.ProviderKeys.AddProviderKey(t.Context(), workspace, key); err != nil {
		t.Fatal(err)
	}
	return key
}
