package manage

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// providerKeyHandler serves provider keys.
type providerKeyHandler struct {
	keys tenants.ProviderKeys
	now  func() time.Time
}

func (h providerKeyHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/provider-keys", a.as(tenants.ReadConfig, h.listProviderKeys))
	group.POST("/provider-keys", a.as(tenants.ManageProviders, withBody(h.createProviderKey)))
	group.PATCH("/provider-keys/:id", a.as(tenants.ManageProviders, withID(h.editProviderKey)))
	group.POST("/provider-keys/:id/replace", a.as(tenants.ManageProviders, withID(h.replaceProviderKey)))
	group.DELETE("/provider-keys/:id", a.as(tenants.ManageProviders, withID(h.deleteProviderKey)))
	group.POST("/provider-keys/:id/test", a.as(tenants.ManageProviders, withID(h.testProviderKey)))
}

// useSpan is the period of the reported use of provider keys.
const useSpan = 30 * 24 * time.Hour

type providerKeyJSON struct {
	ID        uuid.UUID          `json:"id"`
	Provider  tenants.Provider   `json:"provider"`
	Dialects  []tenants.Provider `json:"dialects"`
	Preset    string             `json:"preset,omitempty"`
	Name      string             `json:"name"`
	BaseURL   string             `json:"base_url,omitempty"`
	Region    string             `json:"region,omitempty"`
	Auth      tenants.Auth       `json:"auth,omitempty"`
	Headers   []tenants.Header   `json:"headers"`
	Models    []string           `json:"models"`
	Order     int                `json:"order"`
	Weight    int                `json:"weight"`
	Default   bool               `json:"default"`
	Enabled   bool               `json:"enabled"`
	Wait      int                `json:"wait_seconds"` // 0 means as long as the client waits
	Last4     string             `json:"last4"`
	CreatedBy uuid.UUID          `json:"created_by"`
	CreatedAt time.Time          `json:"created_at"`
	SealedAt  time.Time          `json:"replaced_at"`
	Check     *keyCheckJSON      `json:"check"`         // null if never tested
	Use       *keyUseJSON        `json:"use,omitempty"` // in the list only
}

// keyCheckJSON is the result of the last test.
type keyCheckJSON struct {
	At     time.Time `json:"at"`
	OK     bool      `json:"ok"`
	Status int       `json:"status,omitempty"`
	Error  string    `json:"error,omitempty"`
}

// keyUseJSON sums up a key's requests of the last thirty days.
type keyUseJSON struct {
	Exchanges     int64      `json:"exchanges"`
	CostUSD       float64    `json:"cost_usd"`
	Rejected      int64      `json:"rejected"` // since the provider last accepted the key
	RejectedSince *time.Time `json:"rejected_since"`
	LastErrorAt   *time.Time `json:"last_error_at"`
	LastStatus    int        `json:"last_error_status,omitempty"`
	LastError     string     `json:"last_error,omitempty"`
}

func providerKeyOf(key tenants.ProviderKey) providerKeyJSON {
	answer := providerKeyJSON{
		ID: key.ID, Provider: key.Provider, Dialects: key.Dialects(), Preset: key.Preset, Name: key.Name, BaseURL: key.BaseURL, Region: key.Region, Auth: key.Auth,
		Headers: append([]tenants.Header{}, key.Headers...), Models: append([]string{}, key.Models...),
		Order: key.Order, Weight: max(1, key.Weight), Default: key.Default, Enabled: !key.Disabled, Wait: int(key.Wait / time.Second), Last4: key.Last4,
		CreatedBy: key.CreatedBy, CreatedAt: key.CreatedAt, SealedAt: key.SealedAt,
	}
	if !key.Check.At.IsZero() {
		answer.Check = &keyCheckJSON{At: key.Check.At, OK: key.Check.OK, Status: key.Check.Status, Error: key.Check.Problem}
	}
	return answer
}

func keyUseOf(use tenants.ProviderKeyUse) *keyUseJSON {
	answer := &keyUseJSON{
		Exchanges: use.Exchanges, CostUSD: float64(use.CostMicroUSD) / 1e6, Rejected: use.Rejected, LastStatus: use.LastStatus, LastError: use.LastError,
	}
	if use.Rejected > 0 {
		answer.RejectedSince = &use.Since
	}
	if !use.LastErrorAt.IsZero() {
		answer.LastErrorAt = &use.LastErrorAt
	}
	return answer
}

func (h providerKeyHandler) listProviderKeys(c echo.Context, who caller) error {
	ctx := c.Request().Context()
	keys, err := h.keys.ProviderKeys(ctx, who.workspace)
	if err != nil {
		return err
	}
	uses, err := h.keys.ProviderKeyUses(ctx, who.workspace, h.now().Add(-useSpan))
	if err != nil {
		return err
	}
	data := make([]providerKeyJSON, len(keys))
	for i, key := range keys {
		data[i] = providerKeyOf(key)
		data[i].Use = keyUseOf(uses[key.ID])
	}
	return answerPage(c, data, "")
}

// newProviderKey is the body of a request to store a provider key.
type newProviderKey struct {
	Provider tenants.Provider   `json:"provider"` // or the id of a preset
	Dialects []tenants.Provider `json:"dialects"`
	Name     string             `json:"name"`
	Key      string             `json:"key"`
	BaseURL  string             `json:"base_url"`
	Region   string             `json:"region"`
	Auth     tenants.Auth       `json:"auth"`
	Headers  []tenants.Header   `json:"headers"`
	Models   []string           `json:"models"`
	Order    int                `json:"order"`
	Weight   int                `json:"weight"` // 0: 1
	Default  bool               `json:"default"`
	Enabled  *bool              `json:"enabled"` // nil: true
	Wait     int                `json:"wait_seconds"`
}

func (h providerKeyHandler) createProviderKey(c echo.Context, who caller, asked newProviderKey) error {
	both, err := bothOf(asked.Dialects, asked.Provider == tenants.ProviderGemini)
	if err != nil {
		return err
	}
	wanted := tenants.ProviderKey{
		Provider: asked.Provider, Both: both, Name: asked.Name, BaseURL: asked.BaseURL, Region: asked.Region, Auth: asked.Auth, Headers: asked.Headers,
		ProviderKeyRouting: tenants.ProviderKeyRouting{
			Models: asked.Models, Order: asked.Order, Weight: asked.Weight, Default: asked.Default,
			Disabled: asked.Enabled != nil && !*asked.Enabled, Wait: time.Duration(asked.Wait) * time.Second,
		},
		CreatedBy: who.author(),
	}
	key, err := h.keys.CreateProviderKey(c.Request().Context(), who.workspace, wanted, asked.Key)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, providerKeyOf(key))
}

// bothOf reports whether the dialects of a key contain both Anthropic's and OpenAI's. Keys of Gemini have no other
// dialect than their own.
func bothOf(dialects []tenants.Provider, isGemini bool) (bool, error) {
	seen := map[tenants.Provider]bool{}
	for _, dialect := range dialects {
		if !dialect.IsKnown() || (dialect == tenants.ProviderGemini) != isGemini {
			return false, tenants.Invalid{Field: "dialects", Message: "must be anthropic, openai or both, and gemini for a key of Google Gemini"}
		}
		seen[dialect] = true
	}
	return len(seen) > 1, nil
}

// changedProviderKey is the body of a request to change the use of a key.
type changedProviderKey struct {
	Name     *string             `json:"name"`
	Dialects *[]tenants.Provider `json:"dialects"`
	Auth     *tenants.Auth       `json:"auth"`
	Headers  *[]tenants.Header   `json:"headers"`
	Models   *[]string           `json:"models"`
	Order    *int                `json:"order"`
	Weight   *int                `json:"weight"`
	Default  *bool               `json:"default"`
	Enabled  *bool               `json:"enabled"`
	Wait     *int                `json:"wait_seconds"`
}

func (h providerKeyHandler) editProviderKey(c echo.Context, who caller, id uuid.UUID) error {
	asked, err := readJSON[changedProviderKey](c)
	if err != nil {
		return err
	}
	isGemini := false
	if asked.Dialects != nil {
		keys, err := h.keys.ProviderKeys(c.Request().Context(), who.workspace)
		if err != nil {
			return err
		}
		isGemini = slices.ContainsFunc(keys, func(key tenants.ProviderKey) bool { return key.ID == id && key.Provider == tenants.ProviderGemini })
	}
	change, err := asked.change(isGemini)
	if err != nil {
		return err
	}
	key, err := h.keys.EditProviderKey(c.Request().Context(), who.workspace, id, change)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, providerKeyOf(key))
}

// change returns the change of a key. The error is a tenants.Invalid.
func (c changedProviderKey) change(isGemini bool) (tenants.ProviderKeyChange, error) {
	change := tenants.ProviderKeyChange{Name: c.Name, Auth: c.Auth, Headers: c.Headers, Models: c.Models, Order: c.Order, Weight: c.Weight, Default: c.Default}
	if c.Dialects != nil {
		both, err := bothOf(*c.Dialects, isGemini)
		if err != nil {
			return change, err
		}
		change.Both = &both
	}
	if c.Enabled != nil {
		disabled := !*c.Enabled
		change.Disabled = &disabled
	}
	if c.Wait != nil {
		wait := time.Duration(*c.Wait) * time.Second
		change.Wait = &wait
	}
	return change, nil
}

// replacedProviderKey is the body of a request to replace a key's secret.
type replacedProviderKey struct {
	Key     string  `json:"key"`
	BaseURL *string `json:"base_url"` // nil keeps it
}

func (h providerKeyHandler) replaceProviderKey(c echo.Context, who caller, id uuid.UUID) error {
	asked, err := readJSON[replacedProviderKey](c)
	if err != nil {
		return err
	}
	key, err := h.keys.ReplaceProviderKey(c.Request().Context(), who.workspace, id, asked.Key, asked.BaseURL)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, providerKeyOf(key))
}

func (h providerKeyHandler) deleteProviderKey(c echo.Context, who caller, id uuid.UUID) error {
	return done(c, h.keys.DeleteProviderKey(c.Request().Context(), who.workspace, id))
}

// keyTestJSON is the result of a test.
type keyTestJSON struct {
	OK         bool   `json:"ok"`
	Models     int    `json:"models"`           // that the provider lists
	Status     int    `json:"status,omitempty"` // the provider's; 0 if it was unreachable
	Error      string `json:"error,omitempty"`
	Said       string `json:"provider_said,omitempty"`
	DurationMS int64  `json:"duration_ms"`
}

// testProviderKey asks the provider for its models with a stored key. A key that does not work is a result,
// not an error of the API.
func (h providerKeyHandler) testProviderKey(c echo.Context, who caller, id uuid.UUID) error {
	outcome, err := h.keys.TestProviderKey(c.Request().Context(), who.workspace, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, keyTestJSON{
		OK: outcome.OK, Models: outcome.Models, Status: outcome.Status, Error: outcome.Problem, Said: outcome.Said,
		DurationMS: outcome.Took.Milliseconds(),
	})
}
