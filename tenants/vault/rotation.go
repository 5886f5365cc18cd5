package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Workspaces returns which workspaces there are.
type Workspaces interface {
	AllWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error)
}

// Store keeps the provider keys of all workspaces.
type Store interface {
	ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error)

	// ResealProviderKey replaces a sealed secret, unless it has been replaced already.
	ResealProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, sealed []byte) error
}

// ResealAll seals every provider key again that an older master key sealed, and returns
// how many. Once it returns without an error, the older master keys open no provider
// key that the newest does not. It may be run again at any time, beside requests that
// read the keys and people who replace them.
func (v *Vault) ResealAll(ctx context.Context, all Workspaces, store Store) (int, error) {
	workspaces, err := all.AllWorkspaces(ctx)
	if err != nil {
		return 0, fmt.Errorf("reseal provider keys: %w", err)
	}
	resealed := 0
	var failures []error
	for _, workspace := range workspaces {
		count, err := v.resealOf(ctx, store, workspace)
		resealed, failures = resealed+count, append(failures, err)
	}
	return resealed, errors.Join(failures...)
}

// resealOf does it for one workspace. A key that does not open keeps none of the
// others from it.
func (v *Vault) resealOf(ctx context.Context, store Store, workspace tenants.WorkspaceID) (int, error) {
	keys, err := store.ProviderKeys(ctx, workspace)
	if err != nil {
		return 0, fmt.Errorf("reseal provider keys: %w", err)
	}
	resealed := 0
	var failures []error
	for _, key := range keys {
		sealed, needed, err := v.Reseal(key)
		if err == nil && needed {
			err = store.ResealProviderKey(ctx, workspace, key.ID, key.Sealed, sealed)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("reseal provider key %s: %w", key.ID, err))
			continue
		}
		if needed {
			resealed++
		}
	}
	return resealed, errors.Join(failures...)
}
