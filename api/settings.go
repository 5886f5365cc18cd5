package api

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"

	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// settingsAge bounds how long settings are served from memory should a
// notification of their change be lost.
const settingsAge = 30 * time.Second

// Workspaces reads what a workspace has set.
type Workspaces interface {
	Pipeline(ctx context.Context, workspace uuid.UUID) (tenants.PipelineConfig, error)
	ProviderKeys(ctx context.Context, workspace uuid.UUID) ([]tenants.ProviderKey, error)
}

// Vault opens sealed provider keys.
type Vault interface {
	Open(workspace uuid.UUID, provider tenants.Provider, sealed []byte) (string, error)
}

// Settings serves the settings of workspaces from memory.
type Settings struct {
	workspaces Workspaces
	vault      Vault
	defaults   pipeline.Layer
	private    bool // requests may name base URLs on private addresses
	known      *otter.Cache[uuid.UUID, *settings]
	changes    atomic.Uint64 // counts what Forget was told
}

// settings are what one workspace has set, ready for use.
type settings struct {
	layer   pipeline.Layer
	config  pipeline.Config // where neither the key nor the request sets anything
	sources pipeline.Sources
	targets []target
}

// target is a provider key in the clear. It lives in memory only.
type target struct {
	name string
	upstream.Target
}

// NewSettings returns Settings; modules is the default pipeline of a workspace
// that has set none, and allowPrivate lets requests name base URLs on private
// addresses.
func NewSettings(workspaces Workspaces, vault Vault, modules string, allowPrivate bool) (*Settings, error) {
	known, err := otter.New(&otter.Options[uuid.UUID, *settings]{
		MaximumSize:      100_000,
		ExpiryCalculator: otter.ExpiryWriting[uuid.UUID, *settings](settingsAge),
	})
	if err != nil {
		return nil, fmt.Errorf("known settings: %w", err)
	}
	defaults := pipeline.Layer{Source: pipeline.FromDefault, Modules: modules}
	return &Settings{workspaces: workspaces, vault: vault, defaults: defaults, private: allowPrivate, known: known}, nil
}

// Forget drops a workspace's settings: they have changed.
func (s *Settings) Forget(workspace uuid.UUID) {
	s.changes.Add(1)
	s.known.Invalidate(workspace)
}

// ForgetAll drops all settings: changes may have been missed.
func (s *Settings) ForgetAll() {
	s.changes.Add(1)
	s.known.InvalidateAll()
}

// config returns the pipeline that holds for a key and what the request asks for,
// and where each value comes from.
func (s *Settings) config(ctx context.Context, key tenants.APIKey, asked pipeline.Layer) (pipeline.Config, pipeline.Sources, error) {
	workspace, err := s.of(ctx, key.Workspace)
	if err != nil {
		return pipeline.Config{}, nil, err
	}
	if key.Pipeline == "" && asked.Modules == "" && asked.YAML == "" {
		return workspace.config, workspace.sources, nil
	}
	return pipeline.Resolve(s.defaults, workspace.layer, pipeline.Layer{Source: pipeline.FromAPIKey, YAML: key.Pipeline}, asked)
}

// target returns where a request goes: the first key of the provider, or the one
// that the request names.
func (s *Settings) target(ctx context.Context, workspace uuid.UUID, provider tenants.Provider, asked controls) (upstream.Target, error) {
	if asked.providerKey != "" {
		if asked.baseURL != "" {
			if err := upstream.VerifyBaseURL(asked.baseURL, s.private); err != nil {
				return upstream.Target{}, err
			}
		}
		return upstream.Target{Provider: provider, BaseURL: asked.baseURL, Key: asked.providerKey}, nil
	}
	settings, err := s.of(ctx, workspace)
	if err != nil {
		return upstream.Target{}, err
	}
	for _, target := range settings.targets {
		if target.Provider != provider {
			continue
		}
		if asked.provider == "" || asked.provider == target.name || asked.provider == string(target.Provider) {
			return target.Target, nil
		}
	}
	return upstream.Target{}, tenants.ErrNoProvider
}

// providers returns the providers that the workspace has keys for, in order.
func (s *Settings) providers(ctx context.Context, workspace uuid.UUID) ([]tenants.Provider, error) {
	settings, err := s.of(ctx, workspace)
	if err != nil {
		return nil, err
	}
	providers := make([]tenants.Provider, 0, len(settings.targets))
	for _, target := range settings.targets {
		providers = append(providers, target.Provider)
	}
	return providers, nil
}

func (s *Settings) of(ctx context.Context, workspace uuid.UUID) (*settings, error) {
	if settings, known := s.known.GetIfPresent(workspace); known {
		return settings, nil
	}
	changes := s.changes.Load()
	loaded, err := s.load(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("settings of workspace: %w", err)
	}
	if s.changes.Load() == changes { // or what was read may be old already
		s.known.Set(workspace, loaded)
	}
	return loaded, nil
}

func (s *Settings) load(ctx context.Context, workspace uuid.UUID) (*settings, error) {
	config, err := s.workspaces.Pipeline(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	keys, err := s.workspaces.ProviderKeys(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("provider keys: %w", err)
	}
	loaded := &settings{}
	loaded.layer, err = pipeline.Layer{Source: pipeline.FromWorkspace, Modules: config.Modules, YAML: config.YAML}.Read()
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	loaded.config, loaded.sources, err = pipeline.Resolve(s.defaults, loaded.layer)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	for _, key := range keys {
		secret, err := s.vault.Open(workspace, key.Provider, key.Sealed)
		if err != nil {
			return nil, fmt.Errorf("provider key %s: %w", key.ID, err)
		}
		loaded.targets = append(loaded.targets, target{
			name:   key.Name,
			Target: upstream.Target{Provider: key.Provider, BaseURL: key.BaseURL, Key: secret},
		})
	}
	return loaded, nil
}
