package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// APIKeys keeps a workspace's API keys.
type APIKeys interface {
	APIKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.APIKey, error)

	// CreateAPIKey stores a key with the name, scopes, pipeline, limits, author and
	// expiry of wanted and returns it with its secret. What a script can mend is a
	// tenants.Invalid. It, ChangeAPIKey, RotateAPIKey and RevokeAPIKey return
	// tenants.ErrDenied or a tenants.Forbidden for what the actor may not do.
	CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.APIKey) (key tenants.APIKey, secret string, err error)

	// RevokeAPIKey returns tenants.ErrNotFound for a key of nobody or another workspace.
	RevokeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error

	// ChangeAPIKey sets the name, pipeline, expiry and limits of a key. It and
	// RotateAPIKey return tenants.ErrNotFound, and a tenants.Invalid for what a
	// script can mend.
	ChangeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.APIKey) error

	// RotateAPIKey gives a key another secret and returns it; the one before works
	// for grace.
	RotateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, grace time.Duration) (tenants.Rotation, string, error)
}

type keyJSON struct {
	ID         uuid.UUID       `json:"id"`
	Name       string          `json:"name"`
	Prefix     string          `json:"prefix"`
	Suffix     string          `json:"suffix"`
	Scopes     []tenants.Scope `json:"scopes"`
	Pipeline   string          `json:"pipeline,omitempty"`
	CreatedBy  uuid.UUID       `json:"created_by"`
	CreatedAt  time.Time       `json:"created_at"`
	ExpiresAt  *time.Time      `json:"expires_at"`
	RevokedAt  *time.Time      `json:"revoked_at"`
	LastUsedAt *time.Time      `json:"last_used_at"`
	OldUntil   *time.Time      `json:"old_secret_until"`
	Secret     string          `json:"secret,omitempty"` // in the answer to its creation and rotation only

	limitsJSON
}

func keyOf(key tenants.APIKey) keyJSON {
	return keyJSON{
		ID: key.ID, Name: key.Name, Prefix: key.Prefix, Suffix: key.Suffix, Scopes: key.Scopes, Pipeline: key.Pipeline,
		CreatedBy: key.CreatedBy, CreatedAt: key.CreatedAt, ExpiresAt: key.ExpiresAt, RevokedAt: key.RevokedAt, LastUsedAt: key.LastUsedAt,
		OldUntil: key.OldUntil, limitsJSON: limitsOf(key.Limits),
	}
}

func (s *server) listKeys(c echo.Context, who caller) error {
	keys, err := s.APIKeys.APIKeys(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	data := make([]keyJSON, len(keys))
	for i, key := range keys {
		data[i] = keyOf(key)
	}
	return answerPage(c, data, "")
}

// newKey is what a request for an API key says of it.
type newKey struct {
	Name      string          `json:"name"`
	Scopes    []tenants.Scope `json:"scopes"`
	Pipeline  string          `json:"pipeline"`
	ExpiresAt *time.Time      `json:"expires_at"`

	limitsChange
}

func (s *server) createKey(c echo.Context, who caller) error {
	asked, err := readJSON[newKey](c)
	if err != nil {
		return err
	}
	limits, err := asked.apply(tenants.Limits{})
	if err != nil {
		return err
	}
	key, secret, err := s.APIKeys.CreateAPIKey(c.Request().Context(), who.workspace, tenants.APIKey{
		Name: asked.Name, Scopes: asked.Scopes, Pipeline: asked.Pipeline, Limits: limits, CreatedBy: who.person(), ExpiresAt: asked.ExpiresAt,
	})
	if err != nil {
		return err
	}
	created := keyOf(key)
	created.Secret = secret
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusCreated, created)
}

func (s *server) revokeKey(c echo.Context, who caller) error {
	key, err := s.changeableKey(c, who)
	if err != nil {
		return err
	}
	if err := s.APIKeys.RevokeAPIKey(c.Request().Context(), who.workspace, key.ID); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
