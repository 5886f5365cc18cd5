package proxysettings

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"palimpsest/tenants"
)

// standing is a store of settings that can stand still, and the vault of its provider keys.
type standing struct {
	tenants.ProviderKeyVault

	mu    sync.Mutex
	keys  []tenants.ProviderKey
	still bool
	asked func() // optional: runs while settings are being read
}

// set changes what the store does.
func (s *standing) set(still bool, asked func(), keys ...tenants.ProviderKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.still, s.asked, s.keys = still, asked, keys
}

// Pipeline implements Workspaces.
func (s *standing) Pipeline(ctx context.Context, _ tenants.WorkspaceID) (tenants.PipelineConfig, error) {
	s.mu.Lock()
	still, asked := s.still, s.asked
	s.mu.Unlock()
	if asked != nil {
		asked()
	}
	if still {
		<-ctx.Done()
	}
	return tenants.PipelineConfig{}, ctx.Err()
}

// ProviderKeys implements Workspaces.
func (s *standing) ProviderKeys(context.Context, tenants.WorkspaceID) ([]tenants.ProviderKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

func anthropic() tenants.ProviderKey { return tenants.ProviderKey{Provider: tenants.ProviderAnthropic} }

// setupStanding returns settings that are read from a standing store with a provider key.
func setupStanding(t *testing.T) (*standing, *Cache) {
	t.Helper()
	store := new(standing)
	store.set(false, nil, anthropic())
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
	store.set(true, nil, anthropic())
	settings.ForgetAll()
	start := time.Now()
	if err := settings.ReadAhead(t.Context(), workspace); err != nil || time.Since(start) >= loadTimeout {
		t.Errorf("%v, waited for %s", err, time.Since(start))
	}
}

// Where the database is slow, a request is served with the settings before, and the changed ones apply as soon
// as they are read.
func TestChangedSettingsApplyOnceASlowDatabaseHasReadThem(t *testing.T) {
	t.Parallel()
	store, settings := setupStanding(t)
	workspace := tenants.NewWorkspaceID()
	if err := settings.ReadAhead(t.Context(), workspace); err != nil {
		t.Fatal(err)
	}
	answer := make(chan struct{})
	store.set(false, func() { <-answer }, anthropic(), anthropic())
	settings.ForgetAll()
	if now, err := settings.of(t.Context(), workspace); err != nil || len(now.keys) != 1 {
		t.Fatalf("%v, want the settings before", err)
	}
	close(answer)
	reading := workspace.String() + strconv.FormatUint(settings.changes.Count(), 10)
	<-settings.loading.DoChan(reading, func() (any, error) { return nil, nil }) // waits for it
	if now, err := settings.of(t.Context(), workspace); err != nil || len(now.keys) != 2 {
		t.Errorf("%d provider keys, %v, want the two of now", len(now.keys), err)
	}
}

// After an announced change, a request waits as long as the read may take. Once it has waited in vain, later
// requests do not.
func TestAnnouncedChangeIsWaitedFor(t *testing.T) {
	t.Parallel()
	store, settings := setupStanding(t)
	workspace := tenants.NewWorkspaceID()
	patience := func() time.Duration {
		last, _ := settings.last.Get(workspace)
		return last.patience()
	}
	if err := settings.ReadAhead(t.Context(), workspace); err != nil {
		t.Fatal(err)
	}
	settings.Forget(workspace)
	changed := patience()
	before, _ := settings.last.Get(workspace)
	settings.serveAgain(workspace, before, settings.changes.Count())
	waited := patience()
	settings.Forget(workspace)
	store.set(false, nil, anthropic(), anthropic())
	now, err := settings.of(t.Context(), workspace)
	if err != nil || len(now.keys) != 2 || changed != loadTimeout || waited != againTimeout || patience() != againTimeout {
		t.Errorf("%d provider keys, %v; waits for %s, then for %s, and once it is read for %s", len(now.keys), err, changed, waited, patience())
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
			workspace := tenants.NewWorkspaceID()
			if err := settings.ReadAhead(t.Context(), workspace); err != nil {
				t.Fatal(err)
			}
			settings.ForgetAll()
			store.set(still, func() { settings.Forget(workspace) }, anthropic())
			if err := settings.ReadAhead(t.Context(), workspace); err != nil {
				t.Fatal(err)
			}
			store.set(false, nil, anthropic(), anthropic())
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
	workspace := tenants.NewWorkspaceID()
	store.set(false, nil)
	if err := settings.ReadAhead(t.Context(), workspace); err != nil {
		t.Fatal(err)
	}
	before, _ := settings.last.Get(workspace)
	store.set(false, nil, anthropic())
	settings.Forget(workspace)
	now, err := settings.of(t.Context(), workspace)
	if err != nil || len(now.keys) != 1 || before.patience() != loadTimeout || now.patience() != againTimeout {
		t.Errorf("%v, waits for %s without a key and %s with one", err, before.patience(), now.patience())
	}
}
