package tenants

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
)

// MaxModelPrices bounds the prices that a workspace has set.
const MaxModelPrices = 200

// MaxModelPrice bounds a price, in US dollars for a million tokens.
const MaxModelPrice = 10_000

// ModelPrice is a workspace's own price of a model, in place of the list price, in US dollars for a million
// tokens. A model whose tokens all cost 0 is free.
type ModelPrice struct {
	Model       string    `json:"model"`
	ProviderKey uuid.UUID `json:"provider_key_id,omitzero"` // uuid.Nil: whichever key is used

	Input  float64 `json:"input"`
	Output float64 `json:"output"`

	// 0 keeps the list price's ratio to Input. Without a list price, the rate equals Input.
	CacheRead    float64 `json:"cache_read,omitempty"`
	CacheWrite5m float64 `json:"cache_write_5m,omitempty"`
	CacheWrite1h float64 `json:"cache_write_1h,omitempty"`
}

// rate is one rate of a price, with its name in the API, in files and in forms.
type rate struct {
	Name  string
	Value float64
}

func (p ModelPrice) rates() []rate {
	return []rate{{"input", p.Input}, {"output", p.Output}, {"cache_read", p.CacheRead}, {"cache_write_5m", p.CacheWrite5m}, {"cache_write_1h", p.CacheWrite1h}}
}

// Validate returns an Invalid that names the wrong field and its allowed values.
func (p ModelPrice) Validate() error {
	if !IsModelName(p.Model) {
		return Invalid{Field: "model", Message: fmt.Sprintf("must be a model's name of at most %d bytes", MaxModelName)}
	}
	for _, rate := range p.rates() {
		switch {
		case !(rate.Value >= 0 && rate.Value <= MaxModelPrice): // also rejects NaN
			return Invalid{Field: rate.Name, Message: fmt.Sprintf("must be from 0 to %d US dollars for a million tokens", MaxModelPrice)}
		case p.Input == 0 && rate.Value > 0:
			return Invalid{Field: "input", Message: "must be above 0, unless all prices are 0 and the model is free"}
		}
	}
	if p.CacheRead > p.Input {
		return Invalid{Field: "cache_read", Message: "must be at most the price of input"}
	}
	return nil
}

// at returns the unique key of a price in a list.
func (p ModelPrice) at() ModelAtKey { return ModelAtKey{p.Model, p.ProviderKey} }

// CheckModelPrices returns prices in order. The error is an Invalid with the position of the wrong one.
func CheckModelPrices(prices []ModelPrice) ([]ModelPrice, error) {
	return checkModels("prices", MaxModelPrices, prices)
}

// ModelAtKey is a model at a provider key; uuid.Nil means all keys.
type ModelAtKey struct {
	Model       string
	ProviderKey uuid.UUID
}

// String returns the model, and the id of the provider key if set.
func (a ModelAtKey) String() string {
	if a.ProviderKey == uuid.Nil {
		return a.Model
	}
	return a.Model + " " + a.ProviderKey.String()
}

// checkModels returns a workspace's settings for models in order. The error is an Invalid that names the
// position of the wrong one in a list.
func checkModels[E interface {
	Validate() error
	at() ModelAtKey
}](list string, most int, set []E) ([]E, error) {
	if len(set) > most {
		return nil, Invalid{Field: list, Message: fmt.Sprintf("must have at most %d entries", most)}
	}
	seen := make(map[ModelAtKey]bool, len(set))
	for i, one := range set {
		err := one.Validate()
		if err == nil && seen[one.at()] {
			err = Invalid{Field: "model", Message: "is in the list already"}
		}
		if invalid, is := errors.AsType[Invalid](err); is {
			return nil, Invalid{Field: fmt.Sprintf("%s[%d].%s", list, i, invalid.Field), Message: invalid.Message}
		}
		seen[one.at()] = true
	}
	sorted := slices.Clone(set)
	slices.SortFunc(sorted, func(a, b E) int {
		x, y := a.at(), b.at()
		return cmp.Or(cmp.Compare(x.Model, y.Model), slices.Compare(x.ProviderKey[:], y.ProviderKey[:]))
	})
	return sorted, nil
}

// ModelPriceFields returns the prices' fields for the audit log.
func ModelPriceFields(prices []ModelPrice) Fields {
	fields := Fields{}
	for _, price := range prices {
		name := price.at().String()
		for _, rate := range price.rates() {
			if rate.Value > 0 || rate.Name == "input" {
				fields[name+" "+rate.Name] = strconv.FormatFloat(rate.Value, 'f', -1, 64)
			}
		}
	}
	return fields
}
