package manage

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode"

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
	group.POST("/keys", a.as(tenants.CreateKeys, withBody(h.createKey)))
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

func (h keyHandler) createKey(c echo.Context, who caller, asked newKey) error {
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

// quotaNames returns the names of the limits for which is reports true.
func quotaNames(is func(limit *tenants.Limit) bool) (names []string) {
	for _, limit := range tenants.QuotaLimits() {
		if is(&limit) {
			names = append(names, limit.Name)
		}
	}
	return names
}

// limitsJSON holds an API key's limits. An empty list and 0 mean no limit.
type limitsJSON struct {
	Models         []string `json:"allowed_models"`
	Endpoints      []string `json:"allowed_endpoints"`
	Addresses      []string `json:"allowed_ips"`
	Origins        []string `json:"browser_origins"`
	LockOverrides  bool     `json:"lock_overrides"`
	NoStore        bool     `json:"no_store"`
	PrivateBaseURL *bool    `json:"private_base_url"`
	tenants.QuotaChange
	AllowUnpriced bool `json:"allow_unpriced"`
}

func limitsOf(limits tenants.Limits) limitsJSON {
	return limitsJSON{
		Models: list(limits.Models), Endpoints: list(limits.Endpoints), Addresses: limits.AddressList(), Origins: list(limits.Origins), LockOverrides: limits.LockOverrides, NoStore: limits.NoStore, PrivateBaseURL: limits.PrivateBaseURL,
		QuotaChange: limits.Quota.Change(func(*tenants.Limit, int64) bool { return true }), AllowUnpriced: limits.AllowUnpriced,
	}
}

// limitsChange is a request's change of limits; omitted members stay.
type limitsChange struct {
	Models         *[]string `json:"allowed_models"`
	Endpoints      *[]string `json:"allowed_endpoints"`
	Addresses      *[]string `json:"allowed_ips"`
	Origins        *[]string `json:"browser_origins"`
	LockOverrides  *bool     `json:"lock_overrides"`
	NoStore        *bool     `json:"no_store"`
	PrivateBaseURL *bool     `json:"private_base_url"`
	tenants.QuotaChange
	AllowUnpriced *bool `json:"allow_unpriced"`
}

// apply returns the changed limits. The error is a tenants.Invalid.
func (c limitsChange) apply(limits tenants.Limits) (tenants.Limits, error) {
	set(&limits.Models, c.Models)
	set(&limits.Endpoints, c.Endpoints)
	if c.Origins != nil {
		limits.Origins = tenants.Origins(*c.Origins).Normal()
	}
	set(&limits.LockOverrides, c.LockOverrides)
	set(&limits.NoStore, c.NoStore)
	if c.PrivateBaseURL != nil {
		limits.PrivateBaseURL = c.PrivateBaseURL
	}
	set(&limits.AllowUnpriced, c.AllowUnpriced)
	if c.Addresses != nil {
		var err error
		if limits.Addresses, err = tenants.ParseAddresses(*c.Addresses); err != nil {
			return limits, err
		}
	}
	return limits, c.QuotaChange.Apply(&limits.Quota)
}

// list returns a list for JSON: empty instead of null.
func list[T any](values []T) []T { return append([]T{}, values...) }

// set sets a given member; an omitted one stays.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// optionalTime is a time that a request sets, removes with null, or omits.
type optionalTime struct {
	given bool
	at    *time.Time
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *optionalTime) UnmarshalJSON(raw []byte) error {
	o.given = true
	return json.Unmarshal(raw, &o.at)
}

// keyChange is a request's change of an API key; omitted members stay.
type keyChange struct {
	limitsChange

	Name      *string      `json:"name"`
	Pipeline  *string      `json:"pipeline"`
	ExpiresAt optionalTime `json:"expires_at"`
}

func (h keyHandler) changeKey(c echo.Context, who caller) error {
	key, err := h.changeableKey(c, who)
	if err != nil {
		return err
	}
	asked, err := readJSON[keyChange](c)
	if err != nil {
		return err
	}
	set(&key.Name, asked.Name)
	set(&key.Pipeline, asked.Pipeline)
	if asked.ExpiresAt.given {
		key.ExpiresAt = asked.ExpiresAt.at
	}
	if key.Limits, err = asked.apply(key.Limits); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if err := h.keys.ChangeAPIKey(ctx, who.workspace, key); err != nil {
		return err
	}
	changed, err := h.findKey(c, who, key.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, keyOf(changed))
}

// rotation is the body of a request to replace an API key's secret.
type rotation struct {
	Grace *string `json:"grace"` // how long the old secret still works: "24h", the default
}

// defaultGrace is how long an old secret works by default.
const defaultGrace = 24 * time.Hour

func (h keyHandler) rotateKey(c echo.Context, who caller) error {
	key, err := h.changeableKey(c, who)
	if err != nil {
		return err
	}
	asked, err := readJSON[rotation](c)
	if err != nil {
		return err
	}
	grace := defaultGrace
	if asked.Grace != nil {
		if grace, err = time.ParseDuration(*asked.Grace); err != nil {
			return tenants.Invalid{Field: "grace", Message: "must be a duration from 0s to 720h, which is 30 days"}
		}
	}
	rotated, secret, err := h.keys.RotateAPIKey(c.Request().Context(), who.workspace, key.ID, grace)
	if err != nil {
		return err
	}
	key.Prefix, key.Suffix, key.OldUntil = rotated.Prefix, rotated.Suffix, &rotated.OldUntil
	answer := keyOf(key)
	answer.Secret = secret
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, answer)
}

// changeableKey returns the key in the path if the caller may change it: any key, or one of their own.
func (h keyHandler) changeableKey(c echo.Context, who caller) (tenants.APIKey, error) {
	id, err := pathID(c)
	if err != nil {
		return tenants.APIKey{}, err
	}
	key, err := h.findKey(c, who, id)
	if err != nil {
		return tenants.APIKey{}, err
	}
	if !who.may(tenants.ManageKeys) && key.CreatedBy != who.author() {
		return tenants.APIKey{}, who.denied()
	}
	return key, nil
}

// findKey returns a key of the caller's workspace, or tenants.ErrNotFound.
func (h keyHandler) findKey(c echo.Context, who caller, id uuid.UUID) (tenants.APIKey, error) {
	keys, err := h.keys.APIKeys(c.Request().Context(), who.workspace)
	if err != nil {
		return tenants.APIKey{}, err
	}
	for _, key := range keys {
		if key.ID == id {
			return key, nil
		}
	}
	return tenants.APIKey{}, tenants.ErrNotFound
}

// repeated returns the first duplicate name in an object of a valid JSON text; "" if absent. Names that
// differ in case alone are equal, as they are for our decoder. Duplicates are dangerous because another
// server on the way, or a person in a log, may read the value that doesn't count.
func repeated(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	type level struct {
		names  map[string]bool // nil for a list
		isName bool            // a name follows
	}
	open := []level{{}}
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		top := &open[len(open)-1]
		if name, is := token.(string); is && top.isName {
			folded := strings.Map(fold, name)
			if top.names[folded] {
				return name
			}
			top.names[folded], top.isName = true, false
			continue
		}
		top.isName = top.names != nil
		switch token {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}, isName: true})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}

// fold returns the same rune for all runes that differ in case alone.
func fold(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
