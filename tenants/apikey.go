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

// Scope is something an API key may do.
type Scope string

// The scopes of API keys.
const (
	ScopeProxy  Scope = "proxy"  // send requests through the proxy
	ScopeRecall Scope = "recall" // search and read the archive
	ScopeManage Scope = "manage" // change the workspace
	ScopeRead   Scope = "read"   // read the workspace

	// ScopeSessions is to compact sessions, to undo it, and to pin their turns.
	ScopeSessions Scope = "sessions"
)

// KeyStart is what the secret of every API key begins with.
const KeyStart = "plm_"

// APIKey is a key of a workspace as it is stored: its secret is known to its
// holder only.
type APIKey struct {
	ID        uuid.UUID
	Workspace WorkspaceID
	Name      string
	Prefix    string  // the first characters of the secret, to recognize it by
	Suffix    string  // the last four
	Scopes    []Scope // as they are stored; of a key that was presented, those that it may use now
	Pipeline  string  // overrides the workspace's pipeline config, as YAML; "" if absent
	Limits    Limits
	CreatedBy uuid.UUID // a member
	Person    uuid.UUID // the member whose role bounds what the key may do; of a presented key and in a Grantor only
	Rights    KeyRights // of a presented key and in a Grantor only
	Creator   string    // their e-mail address, in lists only; empty: they left

	APIKeyTimes

	KeyWorkspace
}

// KeyWorkspace is what is known of the workspace of an API key that was presented.
type KeyWorkspace struct {
	Owner      uuid.UUID // the first of its owners
	Suspended  bool      // by the operator
	Unverified bool      // no owner has a verified address
}

// Account returns whose account a key that was presented takes connections and memory from: that
// of the workspace's first owner, with all workspaces that they own.
func (k APIKey) Account() uuid.UUID { return cmp.Or(k.Owner, uuid.UUID(k.Workspace)) }

// KeyRights are what the person behind an API key and the one who created it may both decide
// for its prompts now. They bound the key's own pipeline and what its requests ask for.
type KeyRights struct {
	Reads   Reads // whose text they may read, and so bring into a prompt
	Private bool  // requests may name base URLs on private addresses
}

// And returns what both rights allow.
func (r KeyRights) And(other KeyRights) KeyRights {
	return KeyRights{Reads: r.Reads.And(other.Reads)}
}

// APIKeyTimes are when an API key was made and used, and until when it works.
type APIKeyTimes struct {
	CreatedAt  time.Time
	ExpiresAt  *time.Time // nil if it works until it is revoked
	RevokedAt  *time.Time // nil if it is not revoked
	LastUsedAt *time.Time // nil if it was never used
	OldUntil   *time.Time // the secret before the last rotation works until then; nil if none
}

// Rotation is the secret that takes the place of an API key's.
type Rotation struct {
	Prefix, Suffix string
	Hash           []byte
	OldUntil       time.Time // the secret before works until then
}

// MaxGrace bounds how long a rotated key's old secret goes on to work.
const MaxGrace = 30 * 24 * time.Hour

// Fields returns what the audit log shows of a key.
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

// JoinScopes writes scopes one after another; between commas ParseScopes reads them.
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

// CheckScopes returns each scope of a list once. The error is an Invalid that names the
// first one that does not exist, exactly as it is written.
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

// APIKeys is what people do with a workspace's API keys.
type APIKeys interface {
	// APIKeys returns all keys, revoked ones too, the newest first.
	APIKeys(ctx context.Context, workspace WorkspaceID) ([]APIKey, error)

	// CreateAPIKey stores a key with the name, scopes, pipeline, limits, author and
	// expiry of wanted and returns it with its secret, which no one can read again.
	// What a person can mend is an Invalid. It, ChangeAPIKey, RotateAPIKey and
	// RevokeAPIKey return ErrDenied for what the context's actor may not do.
	CreateAPIKey(ctx context.Context, workspace WorkspaceID, wanted APIKey) (key APIKey, secret string, err error)

	// RevokeAPIKey returns ErrNotFound for a key that the workspace does not have.
	RevokeAPIKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID) error

	// ChangeAPIKey sets the name, pipeline, expiry and limits of a key. It and
	// RotateAPIKey return ErrNotFound, and an Invalid for what a person can mend.
	ChangeAPIKey(ctx context.Context, tenant Tenant, wanted APIKey) error

	// RotateAPIKey gives a key another secret and returns it; the one before works
	// for grace.
	RotateAPIKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID, grace time.Duration) (Rotation, string, error)
}

// KeyAuthenticator tells whose API key a secret is, from memory on the warm path.
type KeyAuthenticator interface {
	// Authenticate returns ErrKeyMalformed, ErrKeyUnknown, ErrKeyRevoked, ErrKeyExpired
	// or ErrSuspended for a secret that opens nothing.
	Authenticate(ctx context.Context, secret string) (APIKey, error)
}
