package manage

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// priceHandler serves a workspace's prices for models.
type priceHandler struct {
	prices tenants.Data
}

func (h priceHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/models/prices", a.as(tenants.ReadConfig, h.listModelPrices))
	group.PUT("/models/prices", a.as(tenants.ManageSettings, withBody(h.putModelPrices)))
}

func (h priceHandler) listModelPrices(c echo.Context, who caller) error {
	prices, err := h.prices.ModelPrices(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return answerPage(c, append([]tenants.ModelPrice{}, prices...), "")
}

// newModelPrices is the body of a request to set prices. It replaces all of them.
type newModelPrices struct {
	Prices *[]tenants.ModelPrice `json:"prices"`
}

func (h priceHandler) putModelPrices(c echo.Context, who caller, asked newModelPrices) error {
	if asked.Prices == nil {
		return tenants.Invalid{Field: "prices", Message: "is missing; an empty list has the list prices hold again"}
	}
	err := h.prices.ChangeModelPrices(c.Request().Context(), who.workspace, func([]tenants.ModelPrice) ([]tenants.ModelPrice, error) { return *asked.Prices, nil })
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// configModelPriceJSON is the price of a model in a file, which identifies a provider key by its name or by
// its id.
type configModelPriceJSON struct {
	Model string `json:"model"`
	Key   string `json:"provider_key,omitempty"`

	Input        float64 `json:"input"`
	Output       float64 `json:"output"`
	CacheRead    float64 `json:"cache_read,omitempty"`
	CacheWrite5m float64 `json:"cache_write_5m,omitempty"`
	CacheWrite1h float64 `json:"cache_write_1h,omitempty"`
}

// modelPricesIn returns prices in the form of a file.
func (c *configured) modelPrices() []configModelPriceJSON {
	return each(c.prices, func(price tenants.ModelPrice) configModelPriceJSON {
		return configModelPriceJSON{
			Model: price.Model, Key: c.nameOf(price.ProviderKey), Input: price.Input, Output: price.Output, CacheRead: price.CacheRead, CacheWrite5m: price.CacheWrite5m, CacheWrite1h: price.CacheWrite1h,
		}
	})
}

// nameOf returns the name of a provider key, or its id if the name is ambiguous; "" for uuid.Nil.
func (c *configured) nameOf(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	name, named := id.String(), 0
	for _, key := range c.providers {
		if key.ID == id {
			name = key.Name
		}
	}
	for _, key := range c.providers {
		if key.Name == name {
			named++
		}
	}
	if named != 1 {
		return id.String()
	}
	return name
}

// takePrices sets the prices of the models in a file; others stay as they are.
func (i *configImport) takePrices(ctx context.Context, part configMember) error {
	wanted := slices.Clone(i.now.prices)
	for _, item := range i.items(part) {
		var asked configModelPriceJSON
		if !takeAll(&i.configReader, item, &asked, "model", "provider_key", "input", "output", "cache_read", "cache_write_5m", "cache_write_1h") {
			continue
		}
		price := tenants.ModelPrice{
			Model: asked.Model, Input: asked.Input, Output: asked.Output, CacheRead: asked.CacheRead, CacheWrite5m: asked.CacheWrite5m, CacheWrite1h: asked.CacheWrite1h,
		}
		if err := price.Validate(); err != nil {
			if err := i.refused(item.place, err); err != nil {
				return err
			}
			continue
		}
		key, known := i.providerKeyNamed(item.place, asked.Key, "the price of "+asked.Model)
		if !known {
			continue
		}
		price.ProviderKey = key
		at := slices.IndexFunc(wanted, func(other tenants.ModelPrice) bool {
			return other.Model == price.Model && other.ProviderKey == price.ProviderKey
		})
		if at < 0 {
			wanted = append(wanted, price)
			continue
		}
		wanted[at] = price
	}
	if len(i.faults) > 0 || !i.changed(part.place, tenants.ModelPriceFields(i.now.prices), tenants.ModelPriceFields(wanted)) {
		return nil
	}
	return i.refused(part.place, i.data.ChangeModelPrices(ctx, i.tenant, func([]tenants.ModelPrice) ([]tenants.ModelPrice, error) { return wanted, nil }))
}

// windowHandler serves a workspace's context windows for models.
type windowHandler struct {
	windows tenants.ModelWindows
}

func (h windowHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/models/windows", a.as(tenants.ReadConfig, h.listModelWindows))
	group.PUT("/models/windows/:model", a.as(tenants.ManagePipeline, h.putModelWindow))
	group.DELETE("/models/windows/:model", a.as(tenants.ManagePipeline, h.deleteModelWindow))
}

type modelWindowJSON struct {
	Model  string               `json:"model"`
	Tokens int                  `json:"window_tokens"`
	Source tenants.WindowSource `json:"source"`
	SetBy  *uuid.UUID           `json:"set_by,omitempty"`
	SetAt  time.Time            `json:"set_at"`
}

func modelWindowOf(window tenants.ModelWindow) modelWindowJSON {
	return modelWindowJSON{Model: window.Model, Tokens: window.Tokens, Source: window.Source, SetBy: nullable(window.SetBy), SetAt: window.SetAt}
}

func (h windowHandler) listModelWindows(c echo.Context, who caller) error {
	windows, err := h.windows.ModelWindows(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return answerPage(c, each(windows, modelWindowOf), "")
}

// newModelWindow is the body of a request to set a model's window.
type newModelWindow struct {
	Tokens int `json:"window_tokens"`
}

func (h windowHandler) putModelWindow(c echo.Context, who caller) error {
	model, err := pathModel(c)
	if err != nil {
		return err
	}
	asked, err := readJSON[newModelWindow](c)
	if err != nil {
		return err
	}
	if asked.Tokens < tenants.MinModelWindow || asked.Tokens > tenants.MaxModelWindow {
		return tenants.Invalid{Field: "window_tokens", Message: fmt.Sprintf("must be a whole number from %d to %d", tenants.MinModelWindow, tenants.MaxModelWindow)}
	}
	window, err := h.windows.SetModelWindow(c.Request().Context(), who.workspace, model, asked.Tokens, who.author())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, modelWindowOf(window))
}

func (h windowHandler) deleteModelWindow(c echo.Context, who caller) error {
	model, err := pathModel(c)
	if err != nil {
		return err
	}
	return done(c, h.windows.DeleteModelWindow(c.Request().Context(), who.workspace, model))
}

// pathModel returns the model in the path, with %2F for a slash of its name.
func pathModel(c echo.Context) (string, error) {
	model, err := url.PathUnescape(c.Param("model"))
	model = strings.TrimSpace(model)
	if err != nil || !tenants.IsModelName(model) {
		return "", tenants.Invalid{Field: "model", Message: fmt.Sprintf("must be a model's name of at most %d bytes, with %%2F for a slash", tenants.MaxModelName)}
	}
	return model, nil
}

// limitHandler serves a workspace's limits for models.
type limitHandler struct {
	limits tenants.Data
}

func (h limitHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/models/limits", a.as(tenants.ReadConfig, h.listModelLimits))
	group.PUT("/models/limits", a.as(tenants.ManageSettings, withBody(h.putModelLimits)))
}

func (h limitHandler) listModelLimits(c echo.Context, who caller) error {
	limits, err := h.limits.ModelLimits(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return answerPage(c, append([]tenants.ModelLimit{}, limits...), "")
}

// newModelLimits is the body of a request to set limits. It replaces all of them.
type newModelLimits struct {
	Limits *[]tenants.ModelLimit `json:"limits"`
}

func (h limitHandler) putModelLimits(c echo.Context, who caller, asked newModelLimits) error {
	if asked.Limits == nil {
		return tenants.Invalid{Field: "limits", Message: "is missing; an empty list has the catalog's hold again"}
	}
	err := h.limits.ChangeModelLimits(c.Request().Context(), who.workspace, func([]tenants.ModelLimit) ([]tenants.ModelLimit, error) { return *asked.Limits, nil })
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// configModelLimitJSON are the limits of a model in a file, which identifies a provider key by its name or by
// its id.
type configModelLimitJSON struct {
	Model string `json:"model"`
	Key   string `json:"provider_key,omitempty"`

	Window int `json:"window_tokens,omitempty"`
	Output int `json:"output_tokens,omitempty"`
}

// modelLimits returns limits in the form of a file.
func (c *configured) modelLimits() []configModelLimitJSON {
	return each(c.limits, func(limit tenants.ModelLimit) configModelLimitJSON {
		return configModelLimitJSON{Model: limit.Model, Key: c.nameOf(limit.ProviderKey), Window: limit.Window, Output: limit.Output}
	})
}

// takeLimits sets the limits of the models in a file; others stay as they are.
func (i *configImport) takeLimits(ctx context.Context, part configMember) error {
	wanted := slices.Clone(i.now.limits)
	for _, item := range i.items(part) {
		var asked configModelLimitJSON
		if !takeAll(&i.configReader, item, &asked, "model", "provider_key", "window_tokens", "output_tokens") {
			continue
		}
		key, known := i.providerKeyNamed(item.place, asked.Key, "the limits of "+asked.Model)
		if !known {
			continue
		}
		limit := tenants.ModelLimit{Model: asked.Model, ProviderKey: key, Window: asked.Window, Output: asked.Output}
		if err := limit.Validate(); err != nil {
			if err := i.refused(item.place, err); err != nil {
				return err
			}
			continue
		}
		wanted = append(slices.DeleteFunc(wanted, func(other tenants.ModelLimit) bool {
			return other.Model == limit.Model && other.ProviderKey == limit.ProviderKey
		}), limit)
	}
	if len(i.faults) > 0 || !i.changed(part.place, tenants.ModelLimitFields(i.now.limits), tenants.ModelLimitFields(wanted)) {
		return nil
	}
	return i.refused(part.place, i.data.ChangeModelLimits(ctx, i.tenant, func([]tenants.ModelLimit) ([]tenants.ModelLimit, error) { return wanted, nil }))
}

// providerKeyNamed returns the provider key named in a file; uuid.Nil if absent. If the key is unknown, it
// reports that something has to be set by another import.
func (i *configImport) providerKeyNamed(place, name, something string) (id uuid.UUID, known bool) {
	if name == "" {
		return uuid.Nil, true
	}
	matches := slices.DeleteFunc(slices.Clone(i.now.providers), func(key tenants.ProviderKey) bool { return key.Name != name && key.ID.String() != name })
	switch len(matches) {
	case 1:
		return matches[0].ID, true
	case 0:
		i.byHandf("Provider key %q does not exist here: add it with its secret, then import again to set %s there.", name, something)
	default:
		i.wrong(place+".provider_key", fmt.Sprintf("is the name of %d provider keys of this workspace; give the id of the one that is meant", len(matches)))
	}
	return uuid.Nil, false
}
