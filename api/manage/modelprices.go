package manage

import (
	"context"
	"net/http"
	"slices"

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
	group.PUT("/models/prices", a.as(tenants.ManageSettings, h.putModelPrices))
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

func (h priceHandler) putModelPrices(c echo.Context, who caller) error {
	asked, err := readJSON[newModelPrices](c)
	if err != nil {
		return err
	}
	if asked.Prices == nil {
		return tenants.Invalid{Field: "prices", Message: "is missing; an empty list has the list prices hold again"}
	}
	err = h.prices.ChangeModelPrices(c.Request().Context(), who.workspace, func([]tenants.ModelPrice) ([]tenants.ModelPrice, error) { return *asked.Prices, nil })
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
	return i.refused(part.place, i.Data.ChangeModelPrices(ctx, i.tenant, func([]tenants.ModelPrice) ([]tenants.ModelPrice, error) { return wanted, nil }))
}
