package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// ProviderKeys keeps a workspace's provider keys, sealed, and tests them.
type ProviderKeys interface {
	ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error)

	// CreateProviderKey seals and stores a key with the provider, name, base URL
	// and author of wanted. What a script can mend is a tenants.Invalid.
	CreateProviderKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.ProviderKey, secret string) (tenants.ProviderKey, error)

	// DeleteProviderKey returns tenants.ErrNotFound for a key of nobody or
	// another workspace.
	DeleteProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error

	// TestProviderKey asks the provider for its models. A key that does not work
	// is an answer; tenants.ErrNotFound is an error.
	TestProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.ProviderKeyTest, error)
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
	wanted := tenants.ProviderKey{Provider: asked.Provider, Name: asked.Name, BaseURL: asked.BaseURL, CreatedBy: who.author()}
	key, err := s.ProviderKeys.CreateProviderKey(c.Request().Context(), who.workspace, wanted, asked.Key)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, providerKeyOf(key))
}

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

// keyTestJSON is the outcome of a test.
type keyTestJSON struct {
	OK         bool   `json:"ok"`
	Models     int    `json:"models"`           // that the provider lists
	Status     int    `json:"status,omitempty"` // the provider's; 0: it could not be reached
	Error      string `json:"error,omitempty"`
	Said       string `json:"provider_said,omitempty"`
	DurationMS int64  `json:"duration_ms"`
}

// testProviderKey asks the provider for its models with a stored key. A key that
// does not work is an answer, not an error of the API.
func (s *server) testProviderKey(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	outcome, err := s.ProviderKeys.TestProviderKey(c.Request().Context(), who.workspace, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, keyTestJSON{
		OK: outcome.OK, Models: outcome.Models, Status: outcome.Status, Error: outcome.Problem, Said: outcome.Said,
		DurationMS: outcome.Took.Milliseconds(),
	})
}
