package manage

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

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
