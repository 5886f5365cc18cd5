package tenants

import (
	"fmt"
	"slices"
	"strings"
)

// NotTaken says that a workspace has provider keys for a dialect, but none that takes
// a model.
type NotTaken struct {
	Model string
	Takes []string // the models that its keys take
}

// Error implements error.
func (e NotTaken) Error() string {
	return fmt.Sprintf("no provider key takes the model %q; allowed are %s", e.Model, strings.Join(e.Takes, ", "))
}

// Unwrap returns ErrNoProvider.
func (e NotTaken) Unwrap() error { return ErrNoProvider }

// Asked is what a request says of where it wants to go.
type Asked struct {
	Dialect Provider
	Key     string // name, id, preset or dialect of the key; empty: any
	Model   string // empty: the request names none
}

// Route returns the place in keys of the one that a request goes to: the first that
// names its model, else the default of the dialect, else the first that names no
// models. A request without a model goes to the first of these, or to the first key
// at all. keys are in the order in which they are asked. The errors are
// ErrNoProvider and NotTaken.
func Route(keys []ProviderKey, asked Asked) (int, error) {
	fallback, open, first := -1, -1, -1
	var takes []string
	for i, key := range keys {
		if !key.takesPart(asked) {
			continue
		}
		if asked.Model != "" && key.Names(asked.Model) {
			return i, nil
		}
		if fallback < 0 && key.Default {
			fallback = i
		}
		if open < 0 && len(key.Models) == 0 {
			open = i
		}
		if first < 0 {
			first = i
		}
		takes = append(takes, key.Models...)
	}
	switch {
	case first < 0:
		return 0, ErrNoProvider
	case fallback >= 0:
		return fallback, nil
	case open >= 0:
		return open, nil
	case asked.Model == "":
		return first, nil
	default:
		slices.Sort(takes)
		return 0, NotTaken{Model: asked.Model, Takes: slices.Compact(takes)}
	}
}

// takesPart reports whether a request may go to a key at all.
func (k ProviderKey) takesPart(asked Asked) bool {
	isNamed := asked.Key == "" || asked.Key == k.Name || asked.Key == string(k.Provider) || asked.Key == k.Preset || asked.Key == k.ID.String()
	return !k.Disabled && k.Speaks(asked.Dialect) && isNamed
}

// Names reports whether one of a key's models is the given one. Case does not matter.
func (k ProviderKey) Names(model string) bool {
	model = strings.ToLower(model)
	return slices.ContainsFunc(k.Models, func(pattern string) bool { return matches(strings.ToLower(pattern), model) })
}
