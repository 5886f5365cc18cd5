package datakeys_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"palimpsest/pipeline/faulttest"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/vault"
	"palimpsest/tenants/vault/vaulttest"
)

// memory is a store of data keys of which a call may fail.
type memory struct {
	datakeys.Store

	calls *faulttest.Calls
	kept  map[tenants.WorkspaceID][]byte
	first []byte // kept by another process, just before this one adds its own; optional
}

func (m *memory) AllWorkspaces(context.Context) (all []tenants.WorkspaceID, err error) {
	err = m.calls.Do(func() error {
		for workspace := range m.kept {
			all = append(all, workspace)
		}
		slices.SortFunc(all, func(a, b tenants.WorkspaceID) int { return bytes.Compare(a[:], b[:]) })
		return nil
	})
	return all, err
}

func (m *memory) DataKey(_ context.Context, workspace tenants.WorkspaceID) (wrapped []byte, err error) {
	err = m.calls.Do(func() error {
		if wrapped = m.kept[workspace]; wrapped == nil {
			return tenants.ErrNotFound
		}
		return nil
	})
	return wrapped, err
}

func (m *memory) AddDataKey(_ context.Context, workspace tenants.WorkspaceID, wrapped []byte) ([]byte, error) {
	err := m.calls.Do(func() error {
		if m.first != nil {
			wrapped = m.first
		}
		m.kept[workspace] = wrapped
		return nil
	})
	return wrapped, err
}

func (m *memory) RewrapDataKey(_ context.Context, workspace tenants.WorkspaceID, old, wrapped []byte) error {
	return m.calls.Do(func() error {
		if bytes.Equal(m.kept[workspace], old) {
			m.kept[workspace] = wrapped
		}
		return nil
	})
}

// opened returns the data keys of a memory, opened with master keys.
func (m *memory) opened(t *testing.T, safe *vault.Vault) map[tenants.WorkspaceID]string {
	t.Helper()
	keys := map[tenants.WorkspaceID]string{}
	for workspace, wrapped := range m.kept {
		key, _, err := safe.Unwrap(workspace, wrapped)
		if err != nil {
			t.Errorf("the key of workspace %s: %v", workspace, err)
		}
		keys[workspace] = string(key)
	}
	return keys
}

// S15: a rotation of three keys goes on behind one that fails, reports it, and is complete after the next one. At
// any moment each key opens with the master keys.
func TestRotationGoesOnWhicheverCallFails(t *testing.T) {
	t.Parallel()
	faulttest.Walk(t, faulttest.Err, func(t *testing.T, calls *faulttest.Calls) {
		store := &memory{kept: map[tenants.WorkspaceID][]byte{}}
		for i := range byte(3) {
			if _, err := datakeys.New(store, vaulttest.Of(t, "a")).DataKey(t.Context(), tenants.WorkspaceID{i}); err != nil {
				t.Fatal(err)
			}
		}
		both, before := vaulttest.Of(t, "b", "a"), store.opened(t, vaulttest.Of(t, "a"))
		store.calls = calls
		rewrapped, err := datakeys.New(store, both).RewrapAll(t.Context())
		if (err != nil) != (calls.Fault() != nil) || err == nil && rewrapped != 3 || err != nil && rewrapped == 3 {
			t.Errorf("%d keys are rewrapped, %v", rewrapped, err)
		}
		if keys := store.opened(t, both); len(keys) != 3 || keys[tenants.WorkspaceID{1}] != before[tenants.WorkspaceID{1}] {
			t.Errorf("the keys have changed: %d are left", len(keys))
		}
		calls.Repair()
		if _, err := datakeys.New(store, both).RewrapAll(t.Context()); err != nil {
			t.Error(err)
		}
		after := store.opened(t, vaulttest.Of(t, "b"))
		for workspace, key := range before {
			if after[workspace] != key {
				t.Errorf("the key of workspace %s is another", workspace)
			}
		}
	})
}

// S15: the other keys are rewrapped although one does not open.
func TestDamagedKeyStopsNoRotation(t *testing.T) {
	t.Parallel()
	store := &memory{kept: map[tenants.WorkspaceID][]byte{{0}: []byte("damaged")}}
	for i := range byte(2) {
		if _, err := datakeys.New(store, vaulttest.Of(t, "a")).DataKey(t.Context(), tenants.WorkspaceID{i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if rewrapped, err := datakeys.New(store, vaulttest.Of(t, "b", "a")).RewrapAll(t.Context()); rewrapped != 2 || !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("%d keys are rewrapped, %v", rewrapped, err)
	}
}

// S15: the key that another process has added first is the one that is used, and a key opens although it cannot
// be rewrapped just now.
func TestKeyThatIsStoredIsUsed(t *testing.T) {
	t.Parallel()
	old, workspace := vaulttest.Of(t, "a"), tenants.WorkspaceID{1}
	first, err := old.Wrap(workspace, bytes.Repeat([]byte("k"), datakeys.Size))
	if err != nil {
		t.Fatal(err)
	}
	store := &memory{kept: map[tenants.WorkspaceID][]byte{}, first: first}
	if key, err := datakeys.New(store, old).DataKey(t.Context(), workspace); err != nil || string(key) != string(bytes.Repeat([]byte("k"), datakeys.Size)) {
		t.Errorf("key %q, %v", key, err)
	}
	store.calls = faulttest.FailAt(2, faulttest.Err) // the first reads it
	if key, err := datakeys.New(store, vaulttest.Of(t, "b", "a")).DataKey(t.Context(), workspace); err != nil || key[0] != 'k' {
		t.Errorf("key %q that cannot be rewrapped: %v", key, err)
	}
}
