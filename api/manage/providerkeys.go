package manage

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// ProviderKeys keeps a workspace's provider keys, sealed.
type ProviderKeys interface {
	ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error)

	AddProviderKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.ProviderKey) error

	// DeleteProviderKey returns tenants.ErrNotFound for a key of nobody or
	// another workspace.
	DeleteProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error
}

// Vault seals provider keys for their workspace and provider, and opens them.
type Vault interface {
	Seal(workspace tenants.WorkspaceID, provider tenants.Provider, secret string) ([]byte, error)
	Open(workspace tenants.WorkspaceID, provider tenants.Provider, sealed []byte) (string, error)
}

type providerKeyJSON struct {
	ID        uuid.UUID        `json:"id"`
	Provider  tenants.Provider `json:"provider"`
	Name      string           `json:"name"`
	BaseURL   string           `json:"base_url,omitempty"`
	Last4     string           `json:"last4"`
	CreatedBy uuid.UUID        `json:"created_by"`
	CreatedAt time.Time        `json:"created_at"`
}

func providerKeyOf(key tenants.ProviderKey) providerKeyJSON {
	return providerKeyJSON{
		ID: key.ID, Provider: key.Provider, Name: key.Name, BaseURL: key.BaseURL, Last4: key.Last4,
		CreatedBy: key.CreatedBy, CreatedAt: key.CreatedAt,
	}
}

func (s *server) listProviderKeys(c echo.Context, who caller) error {
	keys, err := s.ProviderKeys.ProviderKeys(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	data := make([]providerKeyJSON, len(keys))
	for i, key := range keys {
		data[i] = providerKeyOf(key)
	}
	return answerPage(c, data, "")
}

// newProviderKey is what a request to store a provider key says of it.
type newProviderKey struct {
	Provider tenants.Provider `json:"provider"`
	Name     string           `json:"name"`
	Key      string           `json:"key"`
	BaseURL  string           `json:"base_url"`
}

func (s *server) createProviderKey(c echo.Context, who caller) error {
	asked, err := readJSON[newProviderKey](c)
	if err != nil {
		return err
	}
	if err := asked.check(); err != nil {
		return err
	}
	sealed, err := s.Vault.Seal(who.workspace, asked.Provider, asked.Key)
	if err != nil {
		return fmt.Errorf("seal provider key: %w", err)
	}
	key := tenants.ProviderKey{
		ID: uuid.Must(uuid.NewV7()), Workspace: who.workspace, Provider: asked.Provider, Name: asked.Name, BaseURL: asked.BaseURL,
		Last4: asked.Key[len(asked.Key)-4:], Sealed: sealed, CreatedBy: who.author(), CreatedAt: s.Now(),
	}
	if err := s.ProviderKeys.AddProviderKey(c.Request().Context(), who.workspace, key); err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, providerKeyOf(key))
}

// The lengths that a provider's secret may have, in bytes.
const (
	minSecret = 8
	maxSecret = 4096
)

// check completes what is asked for with defaults and checks it.
func (k *newProviderKey) check() error {
	if k.Provider != tenants.ProviderAnthropic && k.Provider != tenants.ProviderOpenAI {
		return tenants.Invalid{Field: "provider", Message: "must be anthropic or openai; for a compatible API, the one whose dialect it speaks, with its base_url"}
	}
	if strings.TrimSpace(k.Name) == "" {
		k.Name = string(k.Provider)
	}
	var err error
	if k.Name, err = checkName(k.Name); err != nil {
		return err
	}
	k.Key = strings.TrimSpace(k.Key)
	if len(k.Key) < minSecret || len(k.Key) > maxSecret || strings.ContainsFunc(k.Key, notInHeader) {
		return tenants.Invalid{Field: "key", Message: fmt.Sprintf("must have %d to %d visible ASCII characters", minSecret, maxSecret)}
	}
	return k.checkBaseURL()
}

func (k *newProviderKey) checkBaseURL() error {
	k.BaseURL = strings.TrimRight(strings.TrimSpace(k.BaseURL), "/")
	if k.BaseURL == "" {
		return nil
	}
	base, err := url.Parse(k.BaseURL)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return tenants.Invalid{Field: "base_url", Message: "must be a URL such as https://llm.example.com, without credentials, query and fragment"}
	}
	return nil
}

// notInHeader reports whether a character may not stand in a key's header.
func notInHeader(r rune) bool { return r <= ' ' || r > '~' }

func (s *server) deleteProviderKey(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	if err := s.ProviderKeys.DeleteProviderKey(c.Request().Context(), who.workspace, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
