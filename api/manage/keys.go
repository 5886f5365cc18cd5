package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// keyHandler answers about API keys.
type keyHandler struct {
	keys tenants.APIKeys
}

func (h keyHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/keys", a.as(tenants.ReadConfig, h.listKeys))
	group.POST("/keys", a.as(tenants.CreateKeys, h.createKey))
	group.PATCH("/keys/:id", a.as(tenants.CreateKeys, h.changeKey))
	group.POST("/keys/:id/rotate", a.as(tenants.CreateKeys, h.rotateKey))
	group.DELETE("/keys/self", a.known(h.revokeSelf))
	group.DELETE("/keys/:id", a.as(tenants.CreateKeys, h.revokeKey))
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

func (h keyHandler) listKeys(c echo.Context, who caller) error {
	keys, err := h.keys.APIKeys(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return answerPage(c, each(keys, keyOf), "")
}

// newKey is the body of a request for an API key.
type newKey struct {
	Name      string          `json:"name"`
	Scopes    []tenants.Scope `json:"scopes"`
	Pipeline  string          `json:"pipeline"`
	ExpiresAt *time.Time      `json:"expires_at"`

	limitsChange
}

func (h keyHandler) createKey(c echo.Context, who caller) error {
	asked, err := readJSON[newKey](c)
	if err != nil {
		return err
	}
	limits, err := asked.apply(tenants.Limits{})
	if err != nil {
		return err
	}
	key, secret, err := h.keys.CreateAPIKey(c.Request().Context(), who.workspace, tenants.APIKey{
		Name: asked.Name, Scopes: asked.Scopes, Pipeline: asked.Pipeline, Limits: limits, CreatedBy: who.person(),
		APIKeyTimes: tenants.APIKeyTimes{ExpiresAt: asked.ExpiresAt},
	})
	if err != nil {
		return err
	}
	created := keyOf(key)
	created.Secret = secret
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusCreated, created)
}

func (h keyHandler) revokeKey(c echo.Context, who caller) error {
	key, err := h.changeableKey(c, who)
	if err != nil {
		return err
	}
	return done(c, h.keys.RevokeAPIKey(c.Request().Context(), who.workspace, key.ID))
}

// revokeSelf revokes the request's own API key: a terminal logs out.
func (h keyHandler) revokeSelf(c echo.Context, who caller) error {
	if !who.isKey() {
		return errNoAPIKey
	}
	return done(c, h.keys.RevokeAPIKey(c.Request().Context(), who.workspace, who.key.ID))
}
