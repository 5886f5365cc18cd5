package tenants

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Provider names a dialect by who first spoke it: "anthropic", "openai". A compatible
// API at a base URL of its own goes by the dialect that it speaks.
type Provider string

// The providers a key may be stored for.
const (
	ProviderAnthropic Provider = "anthropic"
	ProviderOpenAI    Provider = "openai"
)

// Providers returns all providers that a key may be stored for.
func Providers() []Provider { return []Provider{ProviderAnthropic, ProviderOpenAI} }

// IsKnown reports whether a key may be stored for the provider.
func (p Provider) IsKnown() bool { return slices.Contains(Providers(), p) }

// Title returns the provider's name as people know it.
func (p Provider) Title() string {
	if preset, known := PresetOf(string(p)); known {
		return preset.Title
	}
	return string(p)
}

// Auth says in which header a provider looks for its key.
type Auth string

// The ways to send a key.
const (
	AuthUsual   Auth = ""          // as the dialect has it: x-api-key for Anthropic's, a bearer token for OpenAI's
	AuthBearer  Auth = "bearer"    // Authorization: Bearer KEY
	AuthXAPIKey Auth = "x-api-key" // X-Api-Key: KEY
	AuthAPIKey  Auth = "api-key"   // Api-Key: KEY, as Azure has it
)

// Header is a header that is sent along with every request of a provider key. It
// holds no secret: it is stored and shown as it is.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ProviderKey is a provider's key as people see it: its secret is sealed in the vault.
type ProviderKey struct {
	ID        uuid.UUID
	Workspace WorkspaceID
	Provider  Provider // dialect in which it is asked
	Both      bool     // it takes requests in the other dialect too
	Preset    string   // id of the Preset that it was made from; empty if none
	Name      string
	BaseURL   string // empty: the provider's own
	Auth      Auth
	Headers   []Header // sent along with every request
	CreatedBy uuid.UUID
	CreatedAt time.Time

	ProviderKeySecret
	ProviderKeyRouting

	Check ProviderKeyCheck
}

// ProviderKeySecret is the secret of a provider key, as it is stored.
type ProviderKeySecret struct {
	Last4    string
	Sealed   []byte    // by vault, bound to the key's ID, Workspace, Provider and BaseURL
	SealedAt time.Time // when it was given
}

// ProviderKeyRouting says which requests go to a provider key.
type ProviderKeyRouting struct {
	// Models are the names of the models that go to the key, in which * stands for any
	// characters; none: every model that no other key claims.
	Models   []string
	Order    int  // keys with smaller numbers are asked first
	Default  bool // it takes the models of its dialect that no key names
	Disabled bool // it takes no requests

	// Wait is how long the beginning of an answer is waited for; 0: as long as the client waits.
	Wait time.Duration
}

// ProviderKeyCheck is the outcome of the last test of a key.
type ProviderKeyCheck struct {
	At      time.Time // zero: it was never tested
	OK      bool
	Status  int    // of the provider's answer; 0 if none came
	Problem string // empty: the key works
}

// Speaks reports whether a key takes requests in a dialect.
func (k ProviderKey) Speaks(dialect Provider) bool { return k.Both || k.Provider == dialect }

// Dialects returns the dialects in which a key takes requests, its own first.
func (k ProviderKey) Dialects() []Provider {
	dialects := []Provider{k.Provider}
	for _, other := range Providers() {
		if k.Both && other != k.Provider {
			dialects = append(dialects, other)
		}
	}
	return dialects
}

// Fields returns what the audit log shows of a key.
func (k ProviderKey) Fields() Fields {
	fields := Fields{"provider": string(k.Provider), "name": k.Name, "key": "…" + k.Last4, "enabled": strconv.FormatBool(!k.Disabled)}
	names := make([]string, len(k.Headers))
	for i, header := range k.Headers {
		names[i] = header.Name
	}
	for name, value := range map[string]string{
		"base_url": k.BaseURL, "auth": string(k.Auth), "preset": k.Preset,
		"models": strings.Join(k.Models, ", "), "headers": strings.Join(names, ", "),
	} {
		if value != "" {
			fields[name] = value
		}
	}
	if k.Both {
		fields["dialects"] = "both"
	}
	if k.Order != 0 {
		fields["order"] = strconv.Itoa(k.Order)
	}
	if k.Wait != 0 {
		fields["wait"] = k.Wait.String()
	}
	if k.Default {
		fields["default"] = "true"
	}
	return fields
}

// ProviderKeyChange is what is to become of a key; nil fields stay as they are. Where
// a key is sent changes with its secret only, or who may edit it could have it sent
// to themselves.
type ProviderKeyChange struct {
	Name     *string
	Both     *bool
	Auth     *Auth
	Headers  *[]Header
	Models   *[]string
	Order    *int
	Default  *bool
	Disabled *bool
	Wait     *time.Duration
}

// Apply returns a key as it is after the change.
func (c ProviderKeyChange) Apply(key ProviderKey) ProviderKey {
	set(&key.Name, c.Name)
	set(&key.Both, c.Both)
	set(&key.Auth, c.Auth)
	set(&key.Headers, c.Headers)
	set(&key.Models, c.Models)
	set(&key.Order, c.Order)
	set(&key.Default, c.Default)
	set(&key.Disabled, c.Disabled)
	set(&key.Wait, c.Wait)
	key.Headers, key.Models = slices.Clone(key.Headers), slices.Clone(key.Models)
	return key
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// ProviderKeyUse is what came of the requests that were sent with a key.
type ProviderKeyUse struct {
	Exchanges    int64
	CostMicroUSD int64

	// Rejected counts the requests for which the provider refused the key since the
	// last one that it took, the last test that passed or the last new secret; Since
	// is when the first of them was.
	Rejected int64
	Since    time.Time

	LastErrorAt time.Time // of the provider; zero: there was none
	LastStatus  int
	LastError   string // its type
}

// ProviderKeyTest is what came of asking a provider for its models with a key.
type ProviderKeyTest struct {
	OK      bool
	Models  int           // that the provider lists
	Status  int           // of the provider's answer in HTTP; 0 if none came
	Problem string        // why the key does not work and what to do; empty: it does
	Said    string        // what the provider said of it, without the key; empty if none
	Took    time.Duration // from the question to its answer
}

// ProviderKeys is what people do with a workspace's provider keys.
type ProviderKeys interface {
	ProviderKeys(ctx context.Context, workspace WorkspaceID) ([]ProviderKey, error)

	// Presets returns the providers that a key can be made for here.
	Presets() []Preset

	// ProviderKeyUses returns what came of the requests since a time, by key.
	ProviderKeyUses(ctx context.Context, workspace WorkspaceID, since time.Time) (map[uuid.UUID]ProviderKeyUse, error)

	// CreateProviderKey seals and stores a key as it is wanted. What a person can mend
	// is an Invalid.
	CreateProviderKey(ctx context.Context, workspace WorkspaceID, wanted ProviderKey, secret string) (ProviderKey, error)

	// EditProviderKey changes how a key is used, ReplaceProviderKey its secret and, where
	// baseURL is not nil, where it is sent. What a person can mend is an Invalid.
	EditProviderKey(ctx context.Context, tenant Tenant, id uuid.UUID, change ProviderKeyChange) (ProviderKey, error)
	ReplaceProviderKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID, secret string, baseURL *string) (ProviderKey, error)

	// DeleteProviderKey returns ErrNotFound for a key that the workspace does not have.
	DeleteProviderKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID) error

	// TestProviderKey asks the provider for its models. A key that does not work
	// is an answer; ErrNotFound is an error.
	TestProviderKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID) (ProviderKeyTest, error)
}

// ProviderKeyVault seals the secrets of provider keys for their key, and opens them.
type ProviderKeyVault interface {
	Seal(key ProviderKey, secret string) ([]byte, error)
	Open(key ProviderKey) (string, error)
}
