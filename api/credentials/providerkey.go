package credentials

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

// The lengths that a provider's secret may have, in bytes.
const (
	minSecret = 8
	maxSecret = 4096
)

// shown is how many characters of a provider's secret stay readable.
const shown = 4

// CreateProviderKey seals and stores a key with the provider, name, base URL and
// author of wanted. Without a name it has the provider's. What the asker can mend
// is a tenants.Invalid; so is a base URL on a private address, where those are not
// allowed.
func (k *Keeper) CreateProviderKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.ProviderKey, secret string) (tenants.ProviderKey, error) {
	secret = strings.TrimSpace(secret)
	if err := k.checkProviderKey(&wanted, secret); err != nil {
		return tenants.ProviderKey{}, err
	}
	sealed, err := k.config.Vault.Seal(workspace, wanted.Provider, secret)
	if err != nil {
		return tenants.ProviderKey{}, fmt.Errorf("seal provider key: %w", err)
	}
	key := tenants.ProviderKey{
		ID: uuid.Must(uuid.NewV7()), Workspace: workspace, Provider: wanted.Provider, Name: wanted.Name, BaseURL: wanted.BaseURL,
		Last4: secret[len(secret)-shown:], Sealed: sealed, CreatedBy: wanted.CreatedBy, CreatedAt: k.config.Now(),
	}
	if err := k.AddProviderKey(ctx, workspace, key); err != nil {
		return tenants.ProviderKey{}, err
	}
	return key, nil
}

// checkProviderKey completes what is wanted with defaults and checks it.
func (k *Keeper) checkProviderKey(wanted *tenants.ProviderKey, secret string) error {
	if wanted.Provider != tenants.ProviderAnthropic && wanted.Provider != tenants.ProviderOpenAI {
		return tenants.Invalid{Field: "provider", Message: "must be anthropic or openai; for a compatible API, the one whose dialect it speaks, with its base_url"}
	}
	if strings.TrimSpace(wanted.Name) == "" {
		wanted.Name = string(wanted.Provider)
	}
	var err error
	if wanted.Name, err = checkName(wanted.Name); err != nil {
		return err
	}
	if len(secret) < minSecret || len(secret) > maxSecret || strings.ContainsFunc(secret, notInHeader) {
		return tenants.Invalid{Field: "key", Message: fmt.Sprintf("must have %d to %d visible ASCII characters", minSecret, maxSecret)}
	}
	wanted.BaseURL = strings.TrimRight(strings.TrimSpace(wanted.BaseURL), "/")
	if wanted.BaseURL == "" {
		return nil
	}
	return upstream.VerifyBaseURL(wanted.BaseURL, k.config.AllowPrivate)
}

// notInHeader reports whether a character may not stand in a key's header.
func notInHeader(r rune) bool { return r <= ' ' || r > '~' }
