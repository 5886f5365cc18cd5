package tenants

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Provider is a dialect, named after the provider that introduced it: "anthropic", "openai", "gemini". A compatible API
// at another base URL has the provider of its dialect.
type Provider string

// The dialects of provider keys.
const (
	ProviderAnthropic Provider = "anthropic"
	ProviderOpenAI    Provider = "openai"
	ProviderGemini    Provider = "gemini"
)

// Providers returns all dialects of provider keys.
func Providers() []Provider { return []Provider{ProviderAnthropic, ProviderOpenAI, ProviderGemini} }

// IsKnown reports whether the provider is one of Providers.
func (p Provider) IsKnown() bool { return slices.Contains(Providers(), p) }

// Title returns the provider's display name.
func (p Provider) Title() string {
	if preset, known := PresetOf(string(p)); known {
		return preset.Title
	}
	return string(p)
}

// Auth names the header in which a provider expects its key.
type Auth string

// The ways to send a key.
const (
	AuthUsual   Auth = ""          // the dialect's default: x-api-key for Anthropic's, a bearer token for OpenAI's, x-goog-api-key for Gemini's
	AuthBearer  Auth = "bearer"    // Authorization: Bearer KEY
	AuthXAPIKey Auth = "x-api-key" // X-Api-Key: KEY
	AuthAPIKey  Auth = "api-key"   // Api-Key: KEY, for Azure

	// AuthGoogAPIKey is X-Goog-Api-Key: KEY.
	AuthGoogAPIKey Auth = "x-goog-api-key" //nolint:gosec // a header

	// AuthSigV4 signs each request with an AWS access key, see AWSKey.
	AuthSigV4 Auth = "sigv4"

	// AuthGoogle and AuthEntra send an access token that the provider's sign-in service gives for the key, see
	// GoogleAccount and EntraApp.
	AuthGoogle Auth = "google"
	AuthEntra  Auth = "entra"
)

// Header is sent with every request of a provider key. It must not be a secret because it is stored and shown
// unsealed.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ProviderKey is a provider's key as people see it. Its secret is sealed in the vault.
type ProviderKey struct {
	ID        uuid.UUID
	Workspace WorkspaceID `gorm:"column:workspace_id"`
	Provider  Provider    // dialect of its requests
	Both      bool        `gorm:"column:both_dialects"` // it takes requests of Anthropic's and of OpenAI's dialect
	Preset    string      // id of the Preset that it was made from; optional
	Name      string
	BaseURL   string // empty: the provider's own
	Region    string // of a key whose preset has one; empty for others
	Auth      Auth
	Headers   []Header `gorm:"serializer:array"` // sent along with every request
	CreatedBy uuid.UUID
	CreatedAt time.Time

	ProviderKeySecret
	ProviderKeyRouting

	Check ProviderKeyCheck `gorm:"embedded"`
}

// ProviderKeySecret is the stored secret of a provider key.
type ProviderKeySecret struct {
	Last4    string
	Sealed   []byte    // by vault, bound to the key's ID, Workspace, Provider and BaseURL
	SealedAt time.Time // when it was set
}

// ProviderKeyRouting selects the requests that go to a provider key.
type ProviderKeyRouting struct {
	// Models are the names of the key's models, in which * matches any characters. An empty list takes every
	// model that no other key claims.
	Models   []string `gorm:"serializer:array"`
	Order    int      `gorm:"column:place"` // keys with smaller numbers come first
	Weight   int      // its share of new sessions among keys of one order and base URL; 0 means 1
	Default  bool     `gorm:"column:is_default"` // it takes the models of its dialect that no key names
	Disabled bool     // it takes no requests

	// Wait bounds the wait for the beginning of an answer; 0 waits as long as the client.
	Wait time.Duration `gorm:"column:wait_seconds;serializer:seconds"`
}

// ProviderKeyCheck is the outcome of the last test of a key.
type ProviderKeyCheck struct {
	At      time.Time `gorm:"column:checked_at;serializer:null"` // zero: it was never tested
	OK      bool      `gorm:"column:check_ok"`
	Status  int       `gorm:"column:check_status"`  // of the provider's answer; 0 without an answer
	Problem string    `gorm:"column:check_problem"` // empty: the key works
}

// Speaks reports whether a key accepts requests in a dialect.
func (k ProviderKey) Speaks(dialect Provider) bool {
	return k.Provider == dialect || k.Both && dialect != ProviderGemini
}

// Platform returns the platform that a key is for; "" for the provider's own API.
func (k ProviderKey) Platform() Platform { return k.MadeFrom().Platform }

// MadeFrom returns the preset that a key was made from; the zero value if absent.
func (k ProviderKey) MadeFrom() Preset {
	preset, _ := PresetOf(k.Preset)
	return preset
}

// Dialects returns the key's dialects, its own first.
func (k ProviderKey) Dialects() []Provider {
	dialects := []Provider{k.Provider}
	for _, other := range Providers() {
		if other != k.Provider && k.Speaks(other) {
			dialects = append(dialects, other)
		}
	}
	return dialects
}

// Fields returns the key's fields for the audit log.
func (k ProviderKey) Fields() Fields {
	fields := Fields{"provider": string(k.Provider), "name": k.Name, "key": "…" + k.Last4, "enabled": strconv.FormatBool(!k.Disabled)}
	names := make([]string, len(k.Headers))
	for i, header := range k.Headers {
		names[i] = header.Name
	}
	for name, value := range map[string]string{
		"base_url": k.BaseURL, "region": k.Region, "auth": string(k.Auth), "preset": k.Preset,
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
	if k.Weight > 1 {
		fields["weight"] = strconv.Itoa(k.Weight)
	}
	if k.Wait != 0 {
		fields["wait"] = k.Wait.String()
	}
	if k.Default {
		fields["default"] = "true"
	}
	return fields
}

// ProviderKeyChange is a change of a key; nil fields keep their values. The destination of a key changes only
// together with its secret, because otherwise anyone who may edit the key could send its secret to
// themselves.
type ProviderKeyChange struct {
	Name     *string
	Both     *bool
	Auth     *Auth
	Headers  *[]Header
	Models   *[]string
	Order    *int
	Weight   *int
	Default  *bool
	Disabled *bool
	Wait     *time.Duration
}

// Apply returns a key with the change.
func (c ProviderKeyChange) Apply(key ProviderKey) ProviderKey {
	set(&key.Name, c.Name)
	set(&key.Both, c.Both)
	set(&key.Auth, c.Auth)
	set(&key.Headers, c.Headers)
	set(&key.Models, c.Models)
	set(&key.Order, c.Order)
	set(&key.Weight, c.Weight)
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

// ProviderKeyUse sums up the requests sent with a key.
type ProviderKeyUse struct {
	Exchanges    int64
	CostMicroUSD int64

	// Rejected counts the requests for which the provider refused the key since its last success: a request,
	// a passed test or a new secret. Since is the time of the first one.
	Rejected int64
	Since    time.Time

	LastErrorAt time.Time // of the provider; zero without an error
	LastStatus  int
	LastError   string // its type
}

// ProviderKeyTest is the result of requesting a provider's models with a key.
type ProviderKeyTest struct {
	OK      bool
	Models  int           // that the provider lists
	Status  int           // HTTP status of the provider's answer; 0 without an answer
	Problem string        // why the key does not work, and the remedy; "" if it works
	Said    string        // the provider's message, without the key; "" if absent
	Took    time.Duration // duration of the request
}

// ProviderKeys manages a workspace's provider keys.
type ProviderKeys interface {
	ProviderKeys(ctx context.Context, workspace WorkspaceID) ([]ProviderKey, error)

	// Presets returns the providers for which the installation accepts keys.
	Presets() []Preset

	// ProviderKeyUses returns the use of each key since a time.
	ProviderKeyUses(ctx context.Context, workspace WorkspaceID, since time.Time) (map[uuid.UUID]ProviderKeyUse, error)

	// CreateProviderKey seals and stores a key. Bad input is an Invalid.
	CreateProviderKey(ctx context.Context, workspace WorkspaceID, wanted ProviderKey, secret string) (ProviderKey, error)

	// EditProviderKey changes how a key is used. ReplaceProviderKey changes its secret and, unless baseURL is
	// nil, its destination. Bad input is an Invalid.
	EditProviderKey(ctx context.Context, tenant Tenant, id uuid.UUID, change ProviderKeyChange) (ProviderKey, error)
	ReplaceProviderKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID, secret string, baseURL *string) (ProviderKey, error)

	// DeleteProviderKey returns ErrNotFound for an unknown key.
	DeleteProviderKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID) error

	// TestProviderKey requests the provider's models. A key that does not work is a result; ErrNotFound is an
	// error.
	TestProviderKey(ctx context.Context, workspace WorkspaceID, id uuid.UUID) (ProviderKeyTest, error)
}

// ProviderKeyVault seals and opens the secrets of provider keys.
type ProviderKeyVault interface {
	Seal(key ProviderKey, secret string) ([]byte, error)
	Open(key ProviderKey) (string, error)
}
