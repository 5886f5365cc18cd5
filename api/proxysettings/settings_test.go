package proxysettings

import (
	"context"
	"testing"
	"time"

	"palimpsest/tenants"
)

// standing is a store of settings that can stand still, and the vault of its provider keys.
type standing struct {
	tenants.ProviderKeyVault

	keys   []tenants.ProviderKey
	still  bool
	asked  func()        // optional: runs while settings are being read
	waited time.Duration // how long a caller would wait
}

// Pipeline implements Workspaces.
func (s *standing) Pipeline(ctx context.Context, _ tenants.WorkspaceID) (tenants.PipelineConfig, error) {
	deadline, _ := ctx.Deadline()
	s.waited = time.Until(deadline)
	if s.asked != nil {
		s.asked()
	}
	if s.still {
		<-ctx.Done()
	}
	return tenants.PipelineConfig{}, ctx.Err()
}

// ProviderKeys implements Workspaces.
func (s *standing) ProviderKeys(context.Context, tenants.WorkspaceID) ([]tenants.ProviderKey, error) {
	return s.keys, nil
}

// ModelWindows implements Workspaces.
func (*standing) ModelWindows(context.Context, tenants.WorkspaceID) ([]tenants.ModelWindow, error) {
	return nil, nil
}

// DataSettings implements Workspaces.
func (*standing) DataSettings(context.Context, tenants.WorkspaceID) (tenants.DataSettings, error) {
	return tenants.DataSettings{}, nil
}

// LearnModelWindow implements Workspaces.
func (*standing) LearnModelWindow(context.Context, tenants.WorkspaceID, string, int) error {
	return nil
}

// Open implements tenants.ProviderKeyVault.
func (*standing) Open(key tenants.ProviderKey) (string, error) { return string(key.Sealed), nil }

// setupStanding returns settings that are read from a standing store with a provider key.
func setupStanding(t *testing.T) (*standing, *Cache) {
	t.Helper()
	store := &standing{keys: []tenants.ProviderKey{{Provider: tenants.ProviderAnthropic}}}
	settings, err := New(store, store, "ipc", true)
	if err != nil {
		t.Fatal(err)
	}
	return store, settings
}

// Settings that were read before do not have requests wait for a database that stands still.
func TestKnownSettingsDoNotWaitForDatabaseThatStandsStill(t *testing.T) {
	t.Parallel()
	store, settings := setupStanding(t)
	workspace := tenants.NewWorkspaceID()
	if err := settings.ReadAhead(t.Context(), workspace); err != nil {
		t.Fatal(err)
	}
	store.still = true
	settings.ForgetAll()
	if err := settings.ReadAhead(t.Context(), workspace); err != nil || store.waited > time.Second {
		t.Errorf("%v, waited for up to %s", err, store.waited)
	}
}

// Settings that change while they are being read are read again by the next request, whether that read
// succeeds or falls back on the settings before.
func TestSettingsReadDuringChangeAreReadAgain(t *testing.T) {
	t.Parallel()
	for name, still := range map[string]bool{"read before the change": false, "database stands still": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, settings := setupStanding(t)
			keys, workspace := store.keys, tenants.NewWorkspaceID()
			if err := settings.ReadAhead(t.Context(), workspace); err != nil {
				t.Fatal(err)
			}
			settings.Forget(workspace)
			store.still, store.asked = still, func() { settings.Forget(workspace) }
			if err := settings.ReadAhead(t.Context(), workspace); err != nil {
				t.Fatal(err)
			}
			store.still, store.asked, store.keys = false, nil, append(keys, keys[0])
			if now, err := settings.of(t.Context(), workspace); err != nil || len(now.keys) != 2 {
				t.Errorf("%d provider keys, %v, want the two of now", len(now.keys), err)
			}
		})
	}
}

// A workspace's first provider key holds even where the database is slow: without it requests are refused.
func TestFirstProviderKeyIsWaitedFor(t *testing.T) {
	t.Parallel()
	store, settings := setupStanding(t)
	keys, workspace := store.keys, tenants.NewWorkspaceID()
	store.keys = nil
	if err := settings.ReadAhead(t.Context(), workspace); err != nil {
		t.Fatal(err)
	}
	store.keys = keys
	settings.Forget(workspace)
	if now, err := settings.of(t.Context(), workspace); err != nil || len(now.keys) != len(keys) || store.waited <= againTimeout {
		t.Errorf("%v, waits for up to %s", err, store.waited)
	}
}
