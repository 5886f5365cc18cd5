package tenants

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Scope is a right of an API key.
type Scope string

// The scopes of API keys.
const (
	ScopeProxy  Scope = "proxy"  // send requests through the proxy
	ScopeRecall Scope = "recall" // search and read the archive
	ScopeManage Scope = "manage" // change the workspace
	ScopeRead   Scope = "read"   // read the workspace

	// ScopeSessions allows compacting sessions, undoing it, and pinning their turns.
	ScopeSessions Scope = "sessions"
)

// KeyStart is the prefix of every API key's secret.
const KeyStart = "plm_"

// APIKey is a workspace's API key as stored. Only its holder knows its secret.
type APIKey struct {
	ID        uuid.UUID
	Workspace WorkspaceID
	Name      string
	Prefix    string  // the first characters of the secret, to recognize it by
	Suffix    string  // the last four
	Scopes    []Scope // as stored; for a presented key, the scopes that it may use now
	Pipeline  string  // overrides the workspace's pipeline config, as YAML; "" if absent
	Limits    Limits
	CreatedBy uuid.UUID // a member
	Person    uuid.UUID // the member whose role bounds the key; set for a presented key and in a Grantor only
	Rights    KeyRights // of a presented key and in a Grantor only
	Creator   string    // their e-mail address, in lists only; "" if they left

	APIKeyTimes

	KeyWorkspace
}

// KeyWorkspace describes the workspace of a presented API key.
type KeyWorkspace struct {
	Owner      uuid.UUID // the first of its owners
	Suspended  bool      // by the operator
	Unverified bool      // no owner has a verified address
}

// Account returns the account that a presented key takes connections and memory from: the account of the
// workspace's first owner, with all workspaces that they own.
func (k APIKey) Account() uuid.UUID { return cmp.Or(k.Owner, uuid.UUID(k.Workspace)) }

// KeyRights are the rights that the person behind an API key and its creator both have now. They bound the
// key's own pipeline and the options of its requests.
type KeyRights struct {
	Reads   Reads // the people whose session text they may read, and so bring into a prompt
	Private bool  // requests may name base URLs on private addresses
}

// And returns the intersection of both rights.
func (r KeyRights) And(other KeyRights) KeyRights {
	return KeyRights{Reads: r.Reads.And(other.Reads)}
}

// APIKeyTimes are an API key's times of creation, use and expiry.
type APIKeyTimes struct {
	CreatedAt  time.Time
	ExpiresAt  *time.Time // nil without an expiry
	RevokedAt  *time.Time // nil if it is not revoked
	LastUsedAt *time.Time // nil if never used
	OldUntil   *time.Time // end of the grace period of the secret before the last rotation; nil without one
}

// Rotation is a replacement for an API key's secret.
type Rotation struct {
	Prefix, Suffix string
	Hash           []byte
	OldUntil       time.Time // the previous secret works until then
}

// MaxGrace bounds how long the old secret of a rotated key still works.
const MaxGrace = 30 * 24 * time.Hour

// Fields returns the key's fields for the audit log.
func (k APIKey) Fields() Fields {
	fields := Fields{"name": k.Name, "key": k.Prefix + "…" + k.Suffix, "scopes": JoinScopes(k.Scopes, ",")}
	if k.Pipeline != "" {
		fields["pipeline"] = k.Pipeline
	}
	if k.ExpiresAt != nil {
		fields["expires"] = k.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if k.OldUntil != nil {
		fields["old_secret_until"] = k.OldUntil.UTC().Format(time.RFC3339)
	}
	k.Limits.fields(fields)
	return fields
}

// JoinScopes joins scopes with a separator; ParseScopes parses the form with commas.
func JoinScopes(scopes []Scope, separator string) string {
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	return strings.Join(names, separator)
}

// ParseScopes reads scopes separated by commas. The error is an Invalid.
func ParseScopes(list string) ([]Scope, error) {
	var scopes []Scope
	for name := range strings.SplitSeq(list, ",") {
		scopes = append(scopes, Scope(strings.TrimSpace(name)))
	}
	return CheckScopes(scopes)
}

// CheckScopes removes duplicates from a list. The error is an Invalid with the first unknown scope as
// written.
func CheckScopes(list []Scope) ([]Scope, error) {
	var scopes []Scope
	for _, scope := range list {
		if !slices.Contains([]Scope{ScopeProxy, ScopeRecall, ScopeManage, ScopeRead, ScopeSessions}, scope) {
			return nil, Invalid{Field: "scopes", Message: fmt.Sprintf("has %q, which is not one of proxy, recall, manage, read, sessions", string(scope))}
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// APIKeys manages a workspace's API keys.
type APIKeys interface {
	// APIKeys returns all keys, revoked ones too, the newest first.
	APIKeys(ctx context.Context, workspace WorkspaceID) ([]APIKey, error)

	// CreateAPIKey stores a key with the name, scopes, pipeline, limits, author and expiry of wanted. It
	// returns the key with its secret, which cannot be read again. Bad input is an Invalid. CreateAPIKey,
	// ChangeAPIKey, RotateAPIKey and RevokeAPIKey return ErrDenied if the context's actor may not do this.
	CreateAPIKey(ctx context.Context, workspace WorkspaceID, wanted APIKey) (key APIKey, secret string, err error)

	// RevokeAPIKey returns ErrNotFound for an unknown key.
	RevokeAPIKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID) error

	// ChangeAPIKey sets the name, pipeline, expiry and limits of a key. It and RotateAPIKey return
	// ErrNotFound, and an Invalid for bad input.
	ChangeAPIKey(ctx context.Context, tenant Tenant, wanted APIKey) error

	// RotateAPIKey gives a key another secret and returns it; the previous one works for grace.
	RotateAPIKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID, grace time.Duration) (Rotation, string, error)
}

// KeyAuthenticator finds the API key of a secret, usually from memory.
type KeyAuthenticator interface {
	// Authenticate returns ErrKeyMalformed, ErrKeyUnknown, ErrKeyRevoked, ErrKeyExpired or ErrSuspended for a
	// secret without access.
	Authenticate(ctx context.Context, secret string) (APIKey, error)
}
