package api

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
)

const (
	// settingsAge bounds how long settings are served from memory should a
	// notification of their change be lost.
	settingsAge = 30 * time.Second

	// settingsOutage bounds how long they are served while they cannot be read.
	settingsOutage = time.Hour

	loadTimeout = 5 * time.Second

	// againTimeout bounds how long a request waits for settings that were read before, and
	// againAge how long those are served then.
	againTimeout = 500 * time.Millisecond
	againAge     = 5 * time.Second
	maxSettings  = 100_000
)

// Workspaces reads what a workspace has set.
type Workspaces interface {
	Pipeline(ctx context.Context, workspace tenants.WorkspaceID) (tenants.PipelineConfig, error)
	ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error)
	ModelWindows(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelWindow, error)

	DataSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.DataSettings, error)

	// LearnModelWindow keeps the window that a provider named for a model, unless
	// someone has set one.
	LearnModelWindow(ctx context.Context, workspace tenants.WorkspaceID, model string, tokens int) error
}

// Settings serves the settings of workspaces from memory.
type Settings struct {
	workspaces Workspaces
	restrained func(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Restraint, error) // nil if nothing holds anybody back
	vault      tenants.ProviderKeyVault
	defaults   pipeline.Layer
	private    bool                                   // requests may name base URLs on private addresses
	known      *localcache.Cache[[16]byte, *settings] // by workspace
	last       *localcache.Cache[[16]byte, *settings] // for as long as the store fails
	changes    atomic.Uint64                          // counts what Forget was told
}

// settings are what one workspace has set, ready for use.
type settings struct {
	layer   pipeline.Layer
	config  pipeline.Config // where neither the key nor the request sets anything
	sources pipeline.Sources
	keys    []tenants.ProviderKey // in the order in which they are asked
	secrets []string              // of the keys, in the clear: they live in memory only
	windows map[string]int        // context windows by model; never changed
	noStore bool                  // nothing of its exchanges is kept

	restraint tenants.Restraint
}

// NewSettings returns Settings; modules is the default pipeline of a workspace
// that has set none, and allowPrivate lets requests name base URLs on private
// addresses.
func NewSettings(workspaces Workspaces, vault tenants.ProviderKeyVault, modules string, allowPrivate bool) (*Settings, error) {
	known, err := newSettingsCache(settingsAge)
	if err != nil {
		return nil, err
	}
	last, err := newSettingsCache(settingsOutage)
	if err != nil {
		return nil, err
	}
	defaults := pipeline.Layer{Source: pipeline.FromDefault, Modules: modules}
	return &Settings{workspaces: workspaces, vault: vault, defaults: defaults, private: allowPrivate, known: known, last: last}, nil
}

// WithPlans has what restrained says holds back the traffic of workspaces hold from now on, and
// returns s.
func (s *Settings) WithPlans(restrained func(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Restraint, error)) *Settings {
	s.restrained = restrained
	return s
}

func newSettingsCache(age time.Duration) (*localcache.Cache[[16]byte, *settings], error) {
	cache, err := localcache.New[[16]byte](localcache.Options[*settings]{MaximumSize: maxSettings, ExpireAfterWrite: age})
	if err != nil {
		return nil, fmt.Errorf("known settings: %w", err)
	}
	return cache, nil
}

// Forget drops a workspace's settings: they have changed.
func (s *Settings) Forget(workspace tenants.WorkspaceID) {
	s.changes.Add(1)
	s.known.Delete(workspace)
}

// ForgetAll drops all settings: changes may have been missed.
func (s *Settings) ForgetAll() {
	s.changes.Add(1)
	s.known.Clear()
}

// config returns the pipeline that holds for a key and what the request asks for,
// and where each value comes from.
func (s *Settings) config(ctx context.Context, key tenants.APIKey, asked pipeline.Layer) (pipeline.Config, pipeline.Sources, error) {
	workspace, err := s.of(ctx, key.Workspace)
	if err != nil {
		return pipeline.Config{}, pipeline.Sources{}, err
	}
	if key.Pipeline == "" && asked.Modules == "" && asked.YAML == "" {
		return workspace.config, workspace.sources, nil
	}
	return modules.Catalog().Resolve(s.defaults, workspace.layer, pipeline.Layer{Source: pipeline.FromAPIKey, YAML: key.Pipeline}, asked)
}

// ReadAhead has memory hold what a workspace has set, so that it is known should the database be away
// when the workspace sends its next request.
func (s *Settings) ReadAhead(ctx context.Context, workspace tenants.WorkspaceID) error {
	_, err := s.of(ctx, workspace)
	return err
}

// windows returns the context windows that a workspace has for models, by their
// names. The map is not to be changed.
func (s *Settings) windows(ctx context.Context, workspace tenants.WorkspaceID) (map[string]int, error) {
	settings, err := s.of(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return settings.windows, nil
}

// keeps reports whether anything of a workspace's exchanges but figures is kept.
func (s *Settings) keeps(ctx context.Context, workspace tenants.WorkspaceID) (bool, error) {
	settings, err := s.of(ctx, workspace)
	if err != nil {
		return false, err
	}
	return !settings.noStore, nil
}

// restraint returns what holds back a workspace's traffic.
func (s *Settings) restraint(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Restraint, error) {
	settings, err := s.of(ctx, workspace)
	if err != nil {
		return tenants.Restraint{}, err
	}
	return settings.restraint, nil
}

// learn keeps the context window that a provider named for a model that nobody
// knew. It holds at once, even where it cannot be stored.
func (s *Settings) learn(ctx context.Context, workspace tenants.WorkspaceID, model string, tokens int) error {
	changes := s.changes.Load()
	if known, ok := s.known.Get(workspace); ok && known.windows[model] == 0 {
		learned := *known
		learned.windows = maps.Clone(known.windows)
		learned.windows[model] = tokens
		if s.changes.Load() == changes {
			s.known.Set(workspace, &learned)
		}
	}
	if err := s.workspaces.LearnModelWindow(ctx, workspace, model, tokens); err != nil {
		return fmt.Errorf("learn window: %w", err)
	}
	return nil
}

// of returns what a workspace has set. While that cannot be read, what it was
// before goes on to hold: requests must not fail for it.
func (s *Settings) of(ctx context.Context, workspace tenants.WorkspaceID) (*settings, error) {
	if settings, known := s.known.Get(workspace); known {
		return settings, nil
	}
	changes := s.changes.Load()
	before, known := s.last.Get(workspace)
	patience := loadTimeout
	if known && len(before.keys) > 0 { // what was read before there was a provider key serves few requests
		patience = againTimeout
	}
	loading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	loaded, err := s.load(loading, workspace)
	if err != nil {
		if !known || ctx.Err() != nil {
			return nil, fmt.Errorf("settings of workspace: %w", err)
		}
		s.known.Set(workspace, before)
		s.known.SetExpiresAfter(workspace, againAge)
		return before, nil
	}
	s.last.Set(workspace, loaded)
	if s.changes.Load() == changes { // or what was read may be old already
		s.known.Set(workspace, loaded)
	}
	return loaded, nil
}

func (s *Settings) load(ctx context.Context, workspace tenants.WorkspaceID) (*settings, error) {
	config, err := s.workspaces.Pipeline(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	keys, err := s.workspaces.ProviderKeys(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("provider keys: %w", err)
	}
	windows, err := s.workspaces.ModelWindows(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("model windows: %w", err)
	}
	data, err := s.workspaces.DataSettings(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("data settings: %w", err)
	}
	loaded := &settings{windows: make(map[string]int, len(windows)), noStore: data.NoStore}
	for _, window := range windows {
		loaded.windows[window.Model] = window.Tokens
	}
	loaded.layer, err = modules.Catalog().Read(pipeline.WorkspaceLayer(config.Modules, config.YAML))
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	loaded.config, loaded.sources, err = modules.Catalog().Resolve(s.defaults, loaded.layer)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	if s.restrained != nil {
		if loaded.restraint, err = s.restrained(ctx, workspace); err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
	}
	loaded.keys, loaded.secrets = keys, make([]string, len(keys))
	for i, key := range keys {
		if loaded.secrets[i], err = s.vault.Open(key); err != nil {
			return nil, fmt.Errorf("provider key %s: %w", key.ID, err)
		}
	}
	return loaded, nil
}
