package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// maxModels bounds a provider's list of models, in bytes.
const maxModels = 4 << 20

// credentials creates and checks the keys of workspaces for the dashboard.
type credentials struct {
	*tenantsdb.DB

	vault        *vault.Vault
	keys         *identity.Keys
	provider     *upstream.Client
	allowPrivate bool
}

// CreateAPIKey creates a key like wanted and returns it with its secret.
func (c *credentials) CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.APIKey) (tenants.APIKey, string, error) {
	key, secret, hash := c.keys.Create(workspace, wanted.Name, wanted.Scopes, wanted.CreatedBy, wanted.ExpiresAt)
	key.Pipeline = wanted.Pipeline
	if err := c.DB.CreateAPIKey(ctx, workspace, key, hash); err != nil {
		return tenants.APIKey{}, "", err
	}
	return key, secret, nil
}

// CreateProviderKey seals and stores a provider's key.
func (c *credentials) CreateProviderKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.ProviderKey, secret string) (tenants.ProviderKey, error) {
	if wanted.BaseURL != "" {
		if err := upstream.VerifyBaseURL(wanted.BaseURL, c.allowPrivate); err != nil {
			return tenants.ProviderKey{}, err
		}
	}
	sealed, err := c.vault.Seal(workspace, wanted.Provider, secret)
	if err != nil {
		return tenants.ProviderKey{}, err
	}
	wanted.ID, wanted.Workspace, wanted.Sealed = uuid.Must(uuid.NewV7()), workspace, sealed
	wanted.Last4 = secret[max(0, len(secret)-4):]
	if err := c.AddProviderKey(ctx, workspace, wanted); err != nil {
		return tenants.ProviderKey{}, err
	}
	return wanted, nil
}

// rejected is a provider's refusal of a key.
type rejected struct {
	status  int
	message string // what the provider said, without the key
}

// Error implements error.
func (e rejected) Error() string { return fmt.Sprintf("provider answered %d: %s", e.status, e.message) }

// Rejection returns the provider's status and what it said.
func (e rejected) Rejection() (status int, message string) { return e.status, e.message }

// Models asks a provider for its models with a stored key and returns how many it
// lists. A provider that refuses the key makes it a rejected.
func (c *credentials) Models(ctx context.Context, key tenants.ProviderKey) (int, error) {
	secret, err := c.vault.Open(key.Workspace, key.Provider, key.Sealed)
	if err != nil {
		return 0, err
	}
	header := http.Header{}
	if key.Provider == tenants.ProviderAnthropic {
		header.Set("Anthropic-Version", "2023-06-01")
	}
	response, err := c.provider.Send(ctx, http.MethodGet, "/v1/models", header, nil, upstream.Target{
		Provider: key.Provider, BaseURL: key.BaseURL, Key: secret,
	})
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxModels))
	if err != nil {
		return 0, fmt.Errorf("read models: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return 0, rejected{status: response.StatusCode, message: said(content, secret)}
	}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return 0, fmt.Errorf("the provider's list of models cannot be read: %w", err)
	}
	return len(list.Data), nil
}

// said returns the message of a provider's error without the key, should the
// provider repeat it.
func said(body []byte, secret string) string {
	var answer struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return strings.ReplaceAll(answer.Error.Message, secret, "…")
}
