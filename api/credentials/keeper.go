// Package credentials creates, tests and ends the keys of workspaces: API keys,
// which let clients in, and provider keys, which go on to providers. The JSON API,
// the dashboard and the command line use it, so that the same rules hold at every
// door.
package credentials

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// APIKeys keeps API keys under the hashes of their secrets.
type APIKeys interface {
	// APIKeys returns all keys of a workspace, revoked ones too, the newest first.
	APIKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.APIKey, error)

	CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.APIKey, hash []byte) error

	// RevokeAPIKey returns tenants.ErrNotFound for a key of nobody or another workspace.
	RevokeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error

	// ChangeAPIKey sets name, pipeline, expiry and limits. It and RotateAPIKey return
	// tenants.ErrNotFound, and a tenants.Invalid for a key that is revoked.
	ChangeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.APIKey) error
	RotateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, rotation tenants.Rotation) error
}

// ProviderKeys keeps provider keys, sealed.
type ProviderKeys interface {
	// ProviderKeys returns the keys of a workspace, the oldest first.
	ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error)

	AddProviderKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.ProviderKey) error

	// DeleteProviderKey returns tenants.ErrNotFound for a key of nobody or another
	// workspace.
	DeleteProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error
}

// Store keeps the keys of all workspaces.
type Store interface {
	APIKeys
	ProviderKeys
}

// Issuer makes API keys.
type Issuer interface {
	// Create returns a new key with its secret and the hash to store it under. It
	// stores nothing.
	Create(workspace tenants.WorkspaceID, name string, scopes []tenants.Scope, by uuid.UUID, expires *time.Time) (key tenants.APIKey, secret string, hash []byte)

	// Renew returns another secret for a key and the rotation to store. It stores
	// nothing.
	Renew(grace time.Duration) (rotation tenants.Rotation, secret string)
}

// Vault seals provider keys for their workspace and provider, and opens them.
type Vault interface {
	Seal(workspace tenants.WorkspaceID, provider tenants.Provider, secret string) ([]byte, error)
	Open(workspace tenants.WorkspaceID, provider tenants.Provider, sealed []byte) (string, error)
}

// Upstream sends a request to a provider with a key in the clear.
type Upstream interface {
	Send(ctx context.Context, request upstream.Request, target upstream.Target) (*http.Response, error)
}

// Config is what a Keeper works with. Every field but Now must be set.
type Config struct {
	Store    Store
	Issuer   Issuer
	Vault    Vault
	Upstream Upstream

	// Defaults is the pipeline that an API key's own settings change.
	Defaults pipeline.Layer

	// AllowPrivate lets a base URL name a private address.
	AllowPrivate bool

	Now func() time.Time // nil: time.Now
}

// Keeper creates, tests and ends the keys of workspaces. What its methods do not
// change, its Store does.
type Keeper struct {
	Store

	config Config
}

// New returns a Keeper.
func New(config Config) *Keeper {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Keeper{Store: config.Store, config: config}
}

// maxName bounds the name of a key, in characters.
const maxName = 100

// checkName returns a name without the space around it.
func checkName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" || utf8.RuneCountInString(name) > maxName {
		return "", tenants.Invalid{Field: "name", Message: fmt.Sprintf("must have 1 to %d characters", maxName)}
	}
	return name, nil
}
