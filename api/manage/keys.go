package manage

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// APIKeys keeps a workspace's API keys.
type APIKeys interface {
	APIKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.APIKey, error)

	CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.APIKey, hash []byte) error

	// RevokeAPIKey returns tenants.ErrNotFound for a key of nobody or another workspace.
	RevokeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error
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
	Secret     string          `json:"secret,omitempty"` // in the answer to its creation only
}

func keyOf(key tenants.APIKey) keyJSON {
	return keyJSON{
		ID: key.ID, Name: key.Name, Prefix: key.Prefix, Suffix: key.Suffix, Scopes: key.Scopes, Pipeline: key.Pipeline,
		CreatedBy: key.CreatedBy, CreatedAt: key.CreatedAt, ExpiresAt: key.ExpiresAt, RevokedAt: key.RevokedAt, LastUsedAt: key.LastUsedAt,
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
}

func (s *server) createKey(c echo.Context, who caller) error {
	asked, err := readJSON[newKey](c)
	if err != nil {
		return err
	}
	if err := s.checkKey(&asked); err != nil {
		return err
	}
	key, secret, hash := s.Keys.Create(who.workspace, asked.Name, asked.Scopes, who.author(), asked.ExpiresAt)
	key.Pipeline = asked.Pipeline
	if err := s.APIKeys.CreateAPIKey(c.Request().Context(), who.workspace, key, hash); err != nil {
		return err
	}
	created := keyOf(key)
	created.Secret = secret
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusCreated, created)
}

// checkKey completes what is asked for with defaults and checks it.
func (s *server) checkKey(asked *newKey) error {
	var err error
	if asked.Name, err = checkName(asked.Name); err != nil {
		return err
	}
	if len(asked.Scopes) == 0 {
		asked.Scopes = []tenants.Scope{tenants.ScopeProxy}
	}
	names := make([]string, len(asked.Scopes))
	for i, scope := range asked.Scopes {
		names[i] = string(scope)
	}
	if asked.Scopes, err = tenants.ParseScopes(strings.Join(names, ",")); err != nil {
		return err
	}
	if asked.ExpiresAt != nil && !asked.ExpiresAt.After(s.Now()) {
		return tenants.Invalid{Field: "expires_at", Message: "lies in the past"}
	}
	if asked.Pipeline == "" {
		return nil
	}
	layer := pipeline.Layer{Source: pipeline.FromAPIKey, YAML: asked.Pipeline}
	_, _, err = pipeline.Resolve(s.Defaults, layer)
	return within("pipeline", err)
}

// maxName bounds the name of a key, in characters.
const maxName = 100

// checkName returns a name without the space around it.
func checkName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" || utf8.RuneCountInString(name) > maxName {
		return "", tenants.Invalid{Field: "name", Message: fmt.Sprintf("must have 1 to %d characters", maxName)}
	}
	return name, nil
}

func (s *server) revokeKey(c echo.Context, who caller) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	if err := s.APIKeys.RevokeAPIKey(c.Request().Context(), who.workspace, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// within puts the name of a member before the field that err names.
func within(member string, err error) error {
	field, message, ok := invalid(err)
	if !ok {
		return err
	}
	if field != "" {
		member += "." + field
	}
	return tenants.Invalid{Field: member, Message: message}
}
