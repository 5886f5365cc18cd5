package tenants

import (
	"fmt"
	"slices"
	"strings"
)

// NotTaken says that the workspace's provider keys for a dialect do not take a model.
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

// Asked is the target of a request.
type Asked struct {
	Dialect Provider
	Key     string // name, id, preset or dialect of the key; empty: any

	// Platform restricts the request to keys of a platform, because it has that platform's form. "" allows any.
	Platform Platform

	Model string // "" if absent
}

// Route returns the index of the key that a request goes to, the first of Routes.
func Route(keys []ProviderKey, asked Asked) (int, error) {
	places, err := Routes(keys, asked)
	if err != nil {
		return 0, err
	}
	return places[0], nil
}

// Routes returns the indices of the keys that serve a request, the first choice first: keys that name its model;
// else the defaults of the dialect, followed by the ones without models. A request without a model goes to the
// defaults and the ones without models, or to all keys if neither exist. keys must be in routing order. The
// errors are ErrNoProvider and NotTaken.
func Routes(keys []ProviderKey, asked Asked) ([]int, error) {
	var named, defaults, open, all []int
	var takes []string
	for i, key := range keys {
		if !key.takesPart(asked) {
			continue
		}
		switch {
		case asked.Model != "" && key.Names(asked.Model):
			named = append(named, i)
		case key.Default:
			defaults = append(defaults, i)
		case len(key.Models) == 0:
			open = append(open, i)
		}
		all = append(all, i)
		takes = append(takes, key.Models...)
	}
	switch unnamed := slices.Concat(defaults, open); {
	case len(all) == 0:
		return nil, ErrNoProvider
	case len(named) > 0:
		return named, nil
	case len(unnamed) > 0:
		return unnamed, nil
	case asked.Model == "":
		return all, nil
	default:
		slices.Sort(takes)
		return nil, NotTaken{Model: asked.Model, Takes: slices.Compact(takes)}
	}
}

// takesPart reports whether a key accepts a request, regardless of the model.
func (k ProviderKey) takesPart(asked Asked) bool {
	isNamed := asked.Key == "" || asked.Key == k.Name || asked.Key == string(k.Provider) || asked.Key == k.Preset || asked.Key == k.ID.String()
	isThere := asked.Platform == "" || asked.Platform == k.Platform()
	return !k.Disabled && k.Speaks(asked.Dialect) && isNamed && isThere
}

// Names reports whether one of a key's models is the given one. Case does not matter.
func (k ProviderKey) Names(model string) bool {
	model = strings.ToLower(model)
	return slices.ContainsFunc(k.Models, func(pattern string) bool { return matches(strings.ToLower(pattern), model) })
}
