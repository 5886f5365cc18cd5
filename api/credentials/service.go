// Package credentials creates, tests and ends the keys of workspaces: API keys, which authenticate clients,
// and provider keys, which authenticate to providers. The JSON API, the dashboard and the command line share
// it, so that the same rules apply everywhere.
package credentials

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// APIKeyStore stores API keys under the hashes of their secrets.
type APIKeyStore interface {
	// APIKeys returns all keys of a workspace, revoked ones too, the newest first.
	APIKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.APIKey, error)

	// CreateAPIKey, ChangeAPIKey, RotateAPIKey and RevokeAPIKey check the rights of the context's actor
	// against the stored data. They return tenants.ErrDenied or a tenants.Forbidden without them.
	CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.APIKey, hash []byte) error

	// RevokeAPIKey returns tenants.ErrNotFound if the workspace doesn't have the key.
	RevokeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error

	// ChangeAPIKey sets name, pipeline, expiry and limits. It and RotateAPIKey return tenants.ErrNotFound,
	// and a tenants.Invalid for a revoked key.
	ChangeAPIKey(ctx context.Context, tenant tenants.Tenant, key tenants.APIKey) error

	// KeyRights returns the rights of the context's actor for a key, and the key's current pipeline. The
	// pipeline is "" for a key without an id, which is new.
	KeyRights(ctx context.Context, tenant tenants.Tenant, key tenants.APIKey) (rights tenants.KeyRights, pipeline string, err error)
	RotateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, rotation tenants.Rotation) error
}

// ProviderKeyStore stores provider keys, sealed.
type ProviderKeyStore interface {
	// ProviderKeys returns the keys of a workspace in their configured order.
	ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error)

	AddProviderKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.ProviderKey) error

	// ChangeProviderKey replaces a key by the result of change and writes action to the audit log. It returns
	// tenants.ErrNotFound and the errors of change.
	ChangeProviderKey(ctx context.Context, tenant tenants.Tenant, id uuid.UUID, action tenants.Action, change func(tenants.ProviderKey) (tenants.ProviderKey, error)) (tenants.ProviderKey, error)

	// CheckedProviderKey stores the result of a test.
	CheckedProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, check tenants.ProviderKeyCheck) error

	// ProviderKeyUses returns the results of the requests since a time, by the key that sent them.
	ProviderKeyUses(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (map[uuid.UUID]tenants.ProviderKeyUse, error)

	// DeleteProviderKey returns tenants.ErrNotFound if the workspace doesn't have the key.
	DeleteProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error
}

// Store stores the keys of all workspaces.
type Store struct {
	APIKeyStore
	ProviderKeyStore
}

// Issuer creates API keys.
type Issuer interface {
	// Create returns a new key with its secret and the hash to store it under. It doesn't store the key.
	Create(workspace tenants.WorkspaceID, name string, scopes []tenants.Scope, by uuid.UUID, expires *time.Time) (key tenants.APIKey, secret string, hash []byte)

	// Renew returns another secret for a key and the rotation to store. It doesn't store the rotation.
	Renew(grace time.Duration) (rotation tenants.Rotation, secret string)
}

// Config holds a Service's dependencies. Every field but Now must be set.
type Config struct {
	Store    Store
	Issuer   Issuer
	Vault    tenants.ProviderKeyVault
	Upstream upstream.Sender

	// Defaults is the pipeline under an API key's own settings.
	Defaults pipeline.Layer

	// AllowPrivate lets a base URL name a private address.
	AllowPrivate bool

	Now func() time.Time // nil: time.Now
}

// Service creates, tests and ends the keys of workspaces. It inherits all other methods from its Store.
type Service struct {
	Store

	config Config
}

// New returns a Service.
func New(config Config) *Service {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Service{Store: config.Store, config: config}
}

// Presets returns the providers that a key can be made for here. It includes those on private addresses only
// if they are allowed.
func (s *Service) Presets() []tenants.Preset {
	return slices.DeleteFunc(tenants.Presets(), func(preset tenants.Preset) bool { return preset.Private && !s.config.AllowPrivate })
}

// maxName bounds the name of a key, in characters.
const maxName = 100

// checkName returns a name without the space around it.
func checkName(name string) (string, error) { return tenants.CheckName("name", name, maxName) }
