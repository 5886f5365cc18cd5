package tenants

import (
	"time"

	"github.com/google/uuid"
)

// Provider names who answers: "anthropic", "openai", or a compatible API at a
// base URL of its own, told apart by the dialect it speaks.
type Provider string

// The providers a key may be stored for.
const (
	ProviderAnthropic Provider = "anthropic"
	ProviderOpenAI    Provider = "openai"
)

// ProviderKey is a provider's key as people see it: its secret is sealed in the vault.
type ProviderKey struct {
	ID        uuid.UUID
	Workspace WorkspaceID
	Provider  Provider
	Name      string
	BaseURL   string // empty: the provider's own
	Last4     string
	Sealed    []byte // by vault, bound to Workspace and Provider
	CreatedBy uuid.UUID
	CreatedAt time.Time
}

// Fields returns what the audit log shows of a key.
func (k ProviderKey) Fields() Fields {
	fields := Fields{"provider": string(k.Provider), "name": k.Name, "key": "…" + k.Last4}
	if k.BaseURL != "" {
		fields["base_url"] = k.BaseURL
	}
	return fields
}

// ProviderKeyTest is what came of asking a provider for its models with a key.
type ProviderKeyTest struct {
	OK      bool
	Models  int           // that the provider lists
	Status  int           // of the provider's answer in HTTP; 0: none came
	Problem string        // why the key does not work and what to do; empty: it does
	Said    string        // what the provider said of it, without the key; empty: nothing
	Took    time.Duration // from the question to its answer
}
