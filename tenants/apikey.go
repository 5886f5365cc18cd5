package tenants

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
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
	Workspace WorkspaceID `gorm:"column:workspace_id"`
	Name      string
	Prefix    string    // the first characters of the secret, to recognize it by
	Suffix    string    // the last four
	Scopes    []Scope   `gorm:"serializer:list"` // as stored; for a presented key, the scopes that it may use now
	Pipeline  string    // overrides the workspace's pipeline config, as YAML; "" if absent
	Limits    Limits    `gorm:"-"`
	CreatedBy uuid.UUID // a member
	Person    uuid.UUID `gorm:"-"`  // the member whose role bounds the key; set for a presented key and in a Grantor only
	Rights    KeyRights `gorm:"-"`  // of a presented key and in a Grantor only
	Creator   string    `gorm:"->"` // their e-mail address, in lists only; "" if they left

	APIKeyTimes

	KeyWorkspace `gorm:"-"`
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

// Grantor is the current state of the actor who creates or changes API keys: a member, or a key of a member.
type Grantor struct {
	Person uuid.UUID // the member
	Role   Role      // of the member; "" if they are no longer one
	Rights KeyRights // rights of a key that they create
	Key    *APIKey   // the acting key, with the scopes that it may use; nil for a logged-in member
}

// May reports whether the grantor has a permission.
func (g Grantor) May(permission Permission) bool {
	if g.Key != nil {
		return g.Key.May(permission)
	}
	return g.Role.May(permission)
}

// CheckCreate returns ErrDenied if a key would have more rights than its grantor, an Invalid if it may name
// private base URLs and the grantor may not allow that, and a Forbidden if its limits are wider than those of
// the key that creates it.
func (g Grantor) CheckCreate(key APIKey) error {
	if err := g.checkPrivate(key, nil); err != nil {
		return err
	}
	return g.checkCreate(key)
}

func (g Grantor) checkCreate(key APIKey) error {
	if !g.May(CreateKeys) || !MayGrant(g.May, key.Scopes) {
		return ErrDenied
	}
	return g.checkBounds(key, nil)
}

// checkPrivate returns an Invalid if a grantor who may not manage providers gives a key the right to name
// private base URLs. A key may keep this right.
func (g Grantor) checkPrivate(key APIKey, before *APIKey) error {
	gives := func(key APIKey) bool { return key.Limits.PrivateBaseURL != nil && *key.Limits.PrivateBaseURL }
	if !gives(key) || before != nil && gives(*before) || g.May(ManageProviders) {
		return nil
	}
	return Invalid{Field: "private_base_url", Message: "is for people who may manage provider keys to allow; ask an owner or admin of the workspace"}
}

// CheckChange returns ErrDenied if the grantor may not change the key, an Invalid as CheckCreate does, and a
// Forbidden if the change moves it further beyond the bounds of the acting key.
func (g Grantor) CheckChange(before, after APIKey) error {
	if err := g.checkOwn(before); err != nil {
		return err
	}
	if err := g.checkPrivate(after, &before); err != nil {
		return err
	}
	return g.checkBounds(after, &before)
}

// CheckRotate returns ErrDenied or a Forbidden unless the grantor could create the key, because they see its
// new secret.
func (g Grantor) CheckRotate(key APIKey) error {
	if err := g.checkOwn(key); err != nil {
		return err
	}
	return g.checkCreate(key)
}

// CheckRevoke returns ErrDenied if the key is not the grantor's and they may not manage it. Every active key
// may revoke itself.
func (g Grantor) CheckRevoke(key APIKey) error {
	if g.Key != nil && g.Key.ID == key.ID && g.Key.RevokedAt == nil {
		return nil
	}
	return g.checkOwn(key)
}

func (g Grantor) checkOwn(key APIKey) error {
	if g.May(ManageKeys) || g.May(CreateKeys) && key.CreatedBy == g.Person {
		return nil
	}
	return ErrDenied
}

// checkBounds returns a Forbidden if a key exceeds a bound of the acting key, unless it did so before the
// change.
func (g Grantor) checkBounds(key APIKey, before *APIKey) error {
	if g.Key == nil {
		return nil
	}
	for _, bound := range bounds() {
		if bound.within(key, *g.Key) || before != nil && bound.within(key, *before) {
			continue
		}
		return Forbidden{Code: "key_beyond_bounds", Message: fmt.Sprintf(
			"The API key that you use is bounded by its own %s. Keep %s of the other key within it, or do this on the dashboard's API keys page.", bound.field, bound.field)}
	}
	return nil
}

// bound is one limit of an API key.
type bound struct {
	field  string
	within func(key, of APIKey) bool // the key's limit is not wider than the other's
}

func bounds() []bound {
	all := []bound{
		{"expires_at", func(key, of APIKey) bool { return endsBy(key.ExpiresAt, of.ExpiresAt) }},
		{"allowed_ips", func(key, of APIKey) bool { return covered(key.Limits.Addresses, of.Limits.Addresses, coversNetwork) }},
		{"allowed_models", func(key, of APIKey) bool { return covered(key.Limits.Models, of.Limits.Models, matches) }},
		{"allowed_endpoints", func(key, of APIKey) bool { return covered(key.Limits.Endpoints, of.Limits.Endpoints, matches) }},
		{"lock_overrides", func(key, of APIKey) bool { return key.Limits.LockOverrides || !of.Limits.LockOverrides }},
		{"no_store", func(key, of APIKey) bool { return key.Limits.NoStore || !of.Limits.NoStore }},
		{"private_base_url", func(key, of APIKey) bool {
			by, is := of.Limits.PrivateBaseURL, key.Limits.PrivateBaseURL
			return by == nil || *by || is != nil && !*is
		}},
		{"allow_unpriced", func(key, of APIKey) bool {
			return !key.Limits.AllowUnpriced || of.Limits.AllowUnpriced || !of.Limits.HasBudget()
		}},
	}
	for _, limit := range QuotaLimits() {
		all = append(all, bound{limit.Name, func(key, of APIKey) bool {
			most, asked := limit.Of(of.Limits.Quota), limit.Of(key.Limits.Quota)
			return most == 0 || asked > 0 && asked <= most
		}})
	}
	return all
}

// endsBy reports whether end is not later than by; nil means never.
func endsBy(end, by *time.Time) bool { return by == nil || end != nil && !end.After(*by) }

// covered reports whether each entry of a list is covered by one of another; an empty list covers everything.
func covered[T any](list, by []T, covers func(by, entry T) bool) bool {
	if len(by) == 0 {
		return true
	}
	return len(list) > 0 && !slices.ContainsFunc(list, func(entry T) bool {
		return !slices.ContainsFunc(by, func(wide T) bool { return covers(wide, entry) })
	})
}

func coversNetwork(by, network netip.Prefix) bool {
	return by.Bits() <= network.Bits() && by.Contains(network.Addr())
}

// Origins are the origins of pages whose scripts may read the proxy's answers in a browser, in the form that
// browsers send: https://chat.example.com, http://localhost:5173, app://obsidian.md. An empty list allows no
// pages.
type Origins []string

// Allow reports whether pages of an origin may read answers.
func (o Origins) Allow(origin string) bool {
	return slices.Contains(o, strings.ToLower(origin))
}

// Normal returns the origins in the form that browsers send, without duplicates.
func (o Origins) Normal() Origins {
	var kept Origins
	for _, origin := range o {
		if origin = strings.ToLower(strings.TrimSpace(origin)); origin != "" && !slices.Contains(kept, origin) {
			kept = append(kept, origin)
		}
	}
	return kept
}

func (o Origins) validate() error {
	if len(o) > maxPatterns {
		return Invalid{Field: "browser_origins", Message: fmt.Sprintf("must have at most %d entries", maxPatterns)}
	}
	for _, origin := range o {
		if !isOrigin(origin) {
			return Invalid{Field: "browser_origins", Message: fmt.Sprintf(
				"has %s, which is not the whole origin of a page, such as https://chat.example.com or http://localhost:5173: no *, no path, no / at the end", strconv.Quote(origin))}
		}
	}
	return nil
}

// isOrigin reports whether a text is exactly one origin: a scheme and a host, optionally with a port.
func isOrigin(text string) bool {
	read, err := url.Parse(text)
	return err == nil && len(text) <= maxPattern && read.Scheme != "" && read.Hostname() != "" && !strings.Contains(text, "*") &&
		strings.EqualFold(text, read.Scheme+"://"+read.Host) && !strings.HasSuffix(read.Host, ":") && !strings.ContainsFunc(text, notInPattern)
}
