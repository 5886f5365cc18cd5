// Package credentials creates, tests and ends the keys of workspaces: API keys,
// which let clients in, and provider keys, which go on to providers. The JSON API,
// the dashboard and the command line use it, so that the same rules hold
// everywhere.
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

// APIKeyStore keeps API keys under the hashes of their secrets.
type APIKeyStore interface {
	// APIKeys returns all keys of a workspace, revoked ones too, the newest first.
	APIKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.APIKey, error)

	// CreateAPIKey, ChangeAPIKey, RotateAPIKey and RevokeAPIKey decide on what is stored
	// whether the context's actor may do it: else they return tenants.ErrDenied or a
	// tenants.Forbidden.
	CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.APIKey, hash []byte) error

	// RevokeAPIKey returns tenants.ErrNotFound for a key of nobody or another workspace.
	RevokeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error

	// ChangeAPIKey sets name, pipeline, expiry and limits. It and RotateAPIKey return
	// tenants.ErrNotFound, and a tenants.Invalid for a key that is revoked.
	ChangeAPIKey(ctx context.Context, tenant tenants.Tenant, key tenants.APIKey) error

	// KeyRights returns what the context's actor may let a key decide, and the pipeline that it
	// has now; "" for one without an id, which is to be created.
	KeyRights(ctx context.Context, tenant tenants.Tenant, key tenants.APIKey) (rights tenants.KeyRights, pipeline string, err error)
	RotateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, rotation tenants.Rotation) error
}

// ProviderKeyStore keeps provider keys, sealed.
type ProviderKeyStore interface {
	// ProviderKeys returns the keys of a workspace in the order in which they are asked.
	ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error)

	AddProviderKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.ProviderKey) error

	// ChangeProviderKey replaces a key by what change makes of it and notes it as
	// action. It returns tenants.ErrNotFound and the errors of change.
	ChangeProviderKey(ctx context.Context, tenant tenants.Tenant, id uuid.UUID, action tenants.Action, change func(tenants.ProviderKey) (tenants.ProviderKey, error)) (tenants.ProviderKey, error)

	// CheckedProviderKey keeps the outcome of a test.
	CheckedProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, check tenants.ProviderKeyCheck) error

	// ProviderKeyUses returns what came of the requests since a time, by the keys they
	// were sent with.
	ProviderKeyUses(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (map[uuid.UUID]tenants.ProviderKeyUse, error)

	// DeleteProviderKey returns tenants.ErrNotFound for a key of nobody or another
	// workspace.
	DeleteProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error
}

// Store keeps the keys of all workspaces.
type Store struct {
	APIKeyStore
	ProviderKeyStore
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

// Config is what a Service works with. Every field but Now must be set.
type Config struct {
	Store    Store
	Issuer   Issuer
	Vault    tenants.ProviderKeyVault
	Upstream upstream.Sender

	// Defaults is the pipeline that an API key's own settings change.
	Defaults pipeline.Layer

	// AllowPrivate lets a base URL name a private address.
	AllowPrivate bool

	Now func() time.Time // nil: time.Now
}

// Service creates, tests and ends the keys of workspaces. What its methods do not
// change, its Store does.
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

// Presets returns the providers that a key can be made for here: those on private
// addresses only where they are allowed.
func (s *Service) Presets() []tenants.Preset {
	return slices.DeleteFunc(tenants.Presets(), func(preset tenants.Preset) bool { return preset.Private && !s.config.AllowPrivate })
}

// maxName bounds the name of a key, in characters.
const maxName = 100

// checkName returns a name without the space around it.
func checkName(name string) (string, error) { return tenants.CheckName("name", name, maxName) }
