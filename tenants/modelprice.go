package tenants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

// WindowSource is the source of a model's context window.
type WindowSource string

// The sources of a window.
const (
	WindowOverride WindowSource = "override" // set by a person
	WindowLearnt   WindowSource = "learnt"   // a provider named it when a prompt was too long
)

// The windows that can be set, in tokens.
const (
	MinModelWindow = 1_000
	MaxModelWindow = 100_000_000
)

// MaxModelName bounds a model's name, in bytes.
const MaxModelName = 200

// IsModelName reports whether a text is a valid model name: one line of at most MaxModelName bytes.
func IsModelName(text string) bool {
	return text != "" && len(text) <= MaxModelName && strings.TrimSpace(text) == text && isOneLine(text)
}

// ModelWindow is the context window of a model in one workspace, in place of the one in the table of models.
type ModelWindow struct {
	Workspace WorkspaceID `gorm:"column:workspace_id"`
	Model     string
	Tokens    int `gorm:"column:window_tokens"`
	Source    WindowSource
	SetBy     uuid.UUID `gorm:"serializer:null"` // uuid.Nil if it was learned
	SetAt     time.Time
}

// ModelWindows stores the workspaces' context windows, which replace those in the table of models.
type ModelWindows interface {
	// ModelWindows returns all of them, set and learned.
	ModelWindows(ctx context.Context, workspace WorkspaceID) ([]ModelWindow, error)

	// SetModelWindow sets the window of a model.
	SetModelWindow(ctx context.Context, tenant Tenant, model string, tokens int, by uuid.UUID) (ModelWindow, error)

	// DeleteModelWindow returns ErrNotFound if a model has no window of its own.
	DeleteModelWindow(ctx context.Context, workspace WorkspaceID, model string) error
}

// MaxModelLimits bounds the limits of models that a workspace has set.
const MaxModelLimits = 200

// ModelLimit bounds the prompts and answers of a model, in place of the catalog's limits. ModelWindow is the
// context window for all provider keys.
type ModelLimit struct {
	Model       string    `json:"model"`
	ProviderKey uuid.UUID `json:"provider_key_id,omitzero"` // uuid.Nil: whichever key is used

	Window int `json:"window_tokens,omitempty"` // of prompt and answer together, at one provider key; 0: not set
	Output int `json:"output_tokens,omitempty"` // of the longest answer; 0: not set
}

// Validate returns an Invalid that names the wrong field and its allowed values.
func (l ModelLimit) Validate() error {
	switch {
	case !IsModelName(l.Model):
		return Invalid{Field: "model", Message: fmt.Sprintf("must be a model's name of at most %d bytes", MaxModelName)}
	case l.Window == 0 && l.Output == 0:
		return Invalid{Field: "window_tokens", Message: "is missing: set the context window, the longest answer, or both"}
	case l.Window != 0 && (l.Window < MinModelWindow || l.Window > MaxModelWindow):
		return Invalid{Field: "window_tokens", Message: fmt.Sprintf("must be a whole number from %d to %d", MinModelWindow, MaxModelWindow)}
	case l.Output < 0 || l.Output > MaxModelWindow:
		return Invalid{Field: "output_tokens", Message: fmt.Sprintf("must be a whole number from 1 to %d", MaxModelWindow)}
	case l.Window != 0 && l.Output > l.Window:
		return Invalid{Field: "output_tokens", Message: "must be at most the context window"}
	case l.Window != 0 && l.ProviderKey == uuid.Nil:
		return Invalid{Field: "provider_key_id", Message: "must name the key that the context window is for; the one for every key is set under Compression, or with PUT /models/windows/{model}"}
	}
	return nil
}

// at returns the unique key of a limit in a list.
func (l ModelLimit) at() ModelAtKey { return ModelAtKey{l.Model, l.ProviderKey} }

// CheckModelLimits returns limits in order. The error is an Invalid with the position of the wrong one.
func CheckModelLimits(limits []ModelLimit) ([]ModelLimit, error) {
	return checkModels("limits", MaxModelLimits, limits)
}

// ModelLimitFields returns the limits' fields for the audit log.
func ModelLimitFields(limits []ModelLimit) Fields {
	fields := Fields{}
	for _, limit := range limits {
		name := limit.at().String()
		if limit.Window > 0 {
			fields[name+" window_tokens"] = strconv.Itoa(limit.Window)
		}
		if limit.Output > 0 {
			fields[name+" output_tokens"] = strconv.Itoa(limit.Output)
		}
	}
	return fields
}
