package tokens

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Models finds models by their names. It is safe for concurrent use.
type Models struct {
	current   atomic.Pointer[table]
	overrides []Model
}

// NewModels returns the models of the embedded catalog. Overrides are added to it, or replace those with the
// same name. Zero fields of an override are derived from the others or unknown. The error names an override
// without a name or a window.
func NewModels(overrides ...Model) (*Models, error) {
	models := &Models{overrides: overrides}
	for i, model := range overrides {
		if model.Name == "" || model.Window <= 0 {
			return nil, fmt.Errorf("model %d, %q: needs a name and a window above 0", i+1, model.Name)
		}
	}
	if err := models.Replace(embedded); err != nil {
		return nil, fmt.Errorf("catalog.json: %w", err)
	}
	return models, nil
}

// Replace replaces the catalog, unless the new one is invalid or older. In that case it only returns an
// error.
func (m *Models) Replace(catalog []byte) error {
	read, err := readTable(catalog)
	if err != nil {
		return err
	}
	if before := m.current.Load(); before != nil && read.date.Before(before.date) {
		return fmt.Errorf("is of %s, older than the one of %s that holds", read.date.Format(time.DateOnly), before.date.Format(time.DateOnly))
	}
	for _, model := range m.overrides {
		read.byName[strings.ToLower(model.Name)] = model.complete()
	}
	m.current.Store(read)
	return nil
}

// Lookup returns the model that a request names, under the names of providers, clouds, routers and local
// servers (see find). Similar names are different models: "gpt-5.7" is not "gpt-5", and
// "gpt-4o-audio-preview" is not "gpt-4o". The suffix "[1m]" selects the long window. For a name outside the
// catalog, the model is not Known.
func (m *Models) Lookup(name string) Model {
	bare, long := strings.CutSuffix(strings.ToLower(strings.TrimSpace(name)), "[1m]")
	if len(bare) > maxModelName {
		return unknown(name)
	}
	model, known := m.current.Load().find(bare)
	switch {
	case !known:
		return unknown(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "anthropic/"), "openai/"), "[1m]"))
	case long:
		return model.WithLongWindow()
	}
	return model
}

// Of returns the priced models of a provider, by name.
func (m *Models) Of(provider string) []Model {
	var found []Model
	for _, model := range m.current.Load().byName {
		isKnown := slices.ContainsFunc(found, func(other Model) bool { return other.Name == model.Name })
		if model.Provider == provider && model.Price != (Price{}) && !isKnown {
			found = append(found, model)
		}
	}
	slices.SortFunc(found, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Overrides replace the catalog's values of models, by the names in requests or in the catalog. The zero
// value has no effect.
type Overrides struct {
	Windows map[string]int
	Outputs map[string]int // longest answers
	Prices  map[string]Price
}

// On returns a model, requested under a name, with its overrides applied.
func (o Overrides) On(model Model, name string) Model {
	if window := cmp.Or(o.Windows[name], o.Windows[model.Name]); window > 0 {
		model = model.WithWindow(window)
	}
	model.MaxOutput = cmp.Or(o.Outputs[name], o.Outputs[model.Name], model.MaxOutput)
	price, has := o.Prices[name]
	if !has {
		price, has = o.Prices[model.Name]
	}
	if has {
		model = model.WithPrice(price)
	}
	return model
}

// Ending returns the announced end of the model that a request names; ok is false if absent.
func (m *Models) Ending(name string) (ending Ending, ok bool) {
	ending, ok = m.current.Load().ends[m.Lookup(name).Name]
	return ending, ok
}

// ToolUse returns the price of a tool that a model's provider runs. isListed is false if the catalog lacks the
// tool.
func (m *Models) ToolUse(model Model, tool string) (price ToolPrice, isListed bool) {
	named := -1 // length of the beginning of names that the row names
	for _, row := range m.current.Load().tools {
		if row.Provider == model.Provider && row.Tool == tool && strings.HasPrefix(model.Name, row.Models) && len(row.Models) > named {
			named, price = len(row.Models), row.ToolPrice
		}
	}
	return price, named >= 0
}

// DearestToolUse returns the price of one use of the most expensive listed tool, in US dollars. It leaves out
// tools that are charged once for an answer, because a limit of uses doesn't bound them.
func (m *Models) DearestToolUse() float64 {
	dearest := 0.0
	for _, row := range m.current.Load().tools {
		if !row.Once {
			dearest = max(dearest, row.Use)
		}
	}
	return dearest
}

// unknown returns the assumptions about a model outside the catalog. Claude's newer models think without
// being asked and bind their thinking, and the older ones accept the corresponding options.
func unknown(name string) Model {
	model := Model{Name: name, Window: unknownWindow, TokensPerO200k: tokensPerO200kOther}
	if strings.HasPrefix(name, "claude-") {
		model.TokensPerO200k, model.BoundThinking, model.ThinksUnasked = tokensPerO200kClaude, true, true
	}
	return model
}
