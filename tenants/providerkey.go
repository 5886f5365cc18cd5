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
