// Package datakeys creates, opens and rewraps the data key of each workspace. Data keys seal all stored
// conversation data.
package datakeys

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"palimpsest/tenants"
)

// Size is the size of a data key, in bytes.
const Size = 32

// Wrapper seals data keys under the master keys.
type Wrapper interface {
	// Wrap returns a workspace's data key sealed.
	Wrap(workspace tenants.WorkspaceID, key []byte) ([]byte, error)

	// Unwrap returns the key sealed for the workspace, and whether the newest master key sealed it.
	Unwrap(workspace tenants.WorkspaceID, wrapped []byte) (key []byte, newest bool, err error)
}

// Store keeps wrapped data keys. Each method's writes are durable when it returns, regardless of its
// context's transaction.
type Store interface {
	// DataKey returns the wrapped key of a workspace, or tenants.ErrNotFound.
	DataKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error)

	// AddDataKey stores the first key of a workspace and returns the stored one, which differs if someone
	// else was first.
	AddDataKey(ctx context.Context, workspace tenants.WorkspaceID, wrapped []byte) ([]byte, error)

	// RewrapDataKey replaces a wrapped key, unless it has been replaced already.
	RewrapDataKey(ctx context.Context, workspace tenants.WorkspaceID, old, wrapped []byte) error

	// AllWorkspaces returns all workspaces, with keys or without.
	AllWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error)
}

// Manager creates and opens the data keys of all workspaces. It does not cache them, since its callers do.
type Manager struct {
	store   Store
	wrapper Wrapper
}

// New returns a Manager.
func New(store Store, wrapper Wrapper) *Manager { return &Manager{store: store, wrapper: wrapper} }

// DataKey returns the data key of a workspace and creates it if absent. It reseals a key of an older master
// key with the newest one, and ignores failures of that because the key still opens.
func (k *Manager) DataKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	wrapped, err := k.store.DataKey(ctx, workspace)
	if errors.Is(err, tenants.ErrNotFound) {
		wrapped, err = k.add(ctx, workspace)
	}
	if err != nil {
		return nil, fmt.Errorf("data key of workspace %s: %w", workspace, err)
	}
	key, newest, err := k.wrapper.Unwrap(workspace, wrapped)
	if err != nil {
		return nil, fmt.Errorf("data key of workspace %s: %w", workspace, err)
	}
	if len(key) != Size {
		return nil, fmt.Errorf("data key of workspace %s has %d bytes, want %d", workspace, len(key), Size)
	}
	if !newest {
		_ = k.rewrap(ctx, workspace, wrapped, key) // RewrapAll tries again and reports it
	}
	return key, nil
}

// Sample is the number of data keys that Check needs at most.
const Sample = 16

// Check returns an error if wrapped data keys, by workspace, exist and the master keys open none of them,
// because then these keys are for another database. One that opens is enough since others may be damaged.
func Check(wrapper Wrapper, wrapped map[tenants.WorkspaceID][]byte) error {
	var closed error
	for workspace, key := range wrapped {
		if _, _, closed = wrapper.Unwrap(workspace, key); closed == nil {
			return nil
		}
	}
	if closed == nil {
		return nil
	}
	return fmt.Errorf("none of the %d data keys that were tried opens: %w", len(wrapped), closed)
}

// RewrapAll reseals every data key of an older master key, and returns their number. After it returns without
// an error, the older master keys are not needed for data keys. It may run again at any time.
func (k *Manager) RewrapAll(ctx context.Context) (int, error) {
	workspaces, err := k.store.AllWorkspaces(ctx)
	if err != nil {
		return 0, fmt.Errorf("rewrap data keys: %w", err)
	}
	rewrapped := 0
	var failures []error
	for _, workspace := range workspaces {
		was, err := k.rewrapOne(ctx, workspace)
		if err != nil {
			failures = append(failures, fmt.Errorf("rewrap data key of workspace %s: %w", workspace, err))
			continue
		}
		if was {
			rewrapped++
		}
	}
	return rewrapped, errors.Join(failures...)
}

func (k *Manager) rewrapOne(ctx context.Context, workspace tenants.WorkspaceID) (bool, error) {
	wrapped, err := k.store.DataKey(ctx, workspace)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil // the workspace has been deleted since
	}
	if err != nil {
		return false, err
	}
	key, newest, err := k.wrapper.Unwrap(workspace, wrapped)
	if err != nil || newest {
		return false, err
	}
	return true, k.rewrap(ctx, workspace, wrapped, key)
}

func (k *Manager) add(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	key := make([]byte, Size)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make: %w", err)
	}
	wrapped, err := k.wrapper.Wrap(workspace, key)
	if err != nil {
		return nil, err
	}
	return k.store.AddDataKey(ctx, workspace, wrapped)
}

func (k *Manager) rewrap(ctx context.Context, workspace tenants.WorkspaceID, old, key []byte) error {
	wrapped, err := k.wrapper.Wrap(workspace, key)
	if err != nil {
		return err
	}
	return k.store.RewrapDataKey(ctx, workspace, old, wrapped)
}
