package proxysettings

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// Choice is what a request itself says of where it goes.
type Choice struct {
	Provider string      // name of one of the workspace's keys; empty: any
	Key      string      // of a provider, that the request brings along; empty: one of the workspace's
	BaseURL  string      // that Key is for; empty: the provider's own
	Own      http.Header // the caller's own credential for Key, as it is sent; nil if it is in X-Palimpsest-Provider-Key
	Private  bool        // BaseURL may be on a private address, where the installation allows those
}

// Model tells which model a request names; empty if it names none. It may have to read the request's body.
type Model func() (string, error)

// ModelIn returns what tells the model that a body names.
func ModelIn(body []byte) Model {
	return func() (string, error) {
		model := ""
		for name, value := range wire.Members(json.RawMessage(body)) {
			if string(name) == "model" { // of two the last one counts, as everywhere
				model, _ = wire.String(value)
			}
		}
		return model, nil
	}
}

// ProviderOf returns the provider whose API a format belongs to.
func ProviderOf(codec wire.Codec) tenants.Provider { return tenants.Provider(codec.Traits().Provider) }

// Target returns where a request in a dialect goes: to the provider that it brings a
// key for, or with one of the workspace's keys. model is asked only where the answer
// depends on it; it returns an empty name for a request that names none. The errors
// are those of tenants.Route, tenants.Invalid, tenants.Forbidden and those of model.
func (c *Cache) Target(ctx context.Context, workspace tenants.WorkspaceID, dialect tenants.Provider, choice Choice, model Model) (upstream.Target, error) {
	routes, err := c.Routes(ctx, workspace, dialect, choice, model)
	if err != nil {
		return upstream.Target{}, err
	}
	return routes.Targets[0], nil
}

// Routes are the ways that a request can go.
type Routes struct {
	Targets  []upstream.Target // at least one; the one that the request goes to if it works first
	Equal    int               // so many of Targets, from the first, have the same order and base URL
	Failover tenants.Failover  // whether the request may go to any but the first
}

// Routes returns all targets that serve a request, as Target returns the first.
func (c *Cache) Routes(ctx context.Context, workspace tenants.WorkspaceID, dialect tenants.Provider, choice Choice, model Model) (Routes, error) {
	if choice.Own != nil {
		if settings, err := c.of(ctx, workspace); err != nil {
			return Routes{}, err
		} else if !settings.own {
			return Routes{}, tenants.Forbidden{Code: "own_credentials_not_allowed", Message: "This workspace does not forward credentials of callers. " +
				"An owner or admin can allow it on the dashboard's Settings page; without it, send the Palimpsest key alone and the workspace's provider key is used."}
		}
	}
	if choice.Key != "" {
		target, err := c.broughtAlong(dialect, choice, model)
		return Routes{Targets: []upstream.Target{target}, Equal: 1}, err
	}
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return Routes{}, err
	}
	wanted := tenants.Asked{Dialect: dialect, Key: choice.Provider}
	if settings.looksAtModels() {
		if wanted.Model, err = model(); err != nil {
			return Routes{}, err
		}
	}
	places, err := tenants.Routes(settings.keys, wanted)
	if err != nil {
		return Routes{}, err
	}
	routes := Routes{Failover: settings.failover}
	for _, i := range places {
		first := settings.keys[places[0]]
		if key := settings.keys[i]; routes.Equal == len(routes.Targets) && key.Order == first.Order && key.BaseURL == first.BaseURL {
			routes.Equal++
		}
		routes.Targets = append(routes.Targets, settings.target(i, wanted))
	}
	return routes, nil
}

// broughtAlong returns the target that a request names itself.
func (c *Cache) broughtAlong(dialect tenants.Provider, choice Choice, model Model) (upstream.Target, error) {
	target := upstream.Target{Provider: dialect, BaseURL: choice.BaseURL, Key: choice.Key, Own: choice.Own, PublicOnly: !choice.Private}
	if choice.BaseURL == "" {
		return target, nil
	}
	if err := upstream.VerifyBaseURL(choice.BaseURL, c.private); err != nil {
		return upstream.Target{}, err
	}
	if c.private && !choice.Private && upstream.VerifyBaseURL(choice.BaseURL, false) != nil {
		return upstream.Target{}, tenants.Forbidden{Code: "private_base_url_not_allowed", Message: "This Palimpsest API key may name public base URLs that start with https:// only in X-Palimpsest-Base-Url. " +
			"Name one, or have an owner or admin allow private addresses for the key on the dashboard's API keys page."}
	}
	var err error
	if upstream.NeedsModel(choice.BaseURL) {
		target.Model, err = model()
	}
	return target, err
}

// target returns the key at a place as a request reaches it.
func (s *settings) target(i int, asked tenants.Asked) upstream.Target {
	return upstream.TargetOf(s.keys[i], asked.Dialect, s.secrets[i], asked.Model)
}

// looksAtModels reports whether it depends on its model where a request goes.
func (s *settings) looksAtModels() bool {
	return slices.ContainsFunc(s.keys, func(key tenants.ProviderKey) bool {
		return !key.Disabled && (len(key.Models) > 0 || upstream.NeedsModel(key.BaseURL))
	})
}

// DialectFor returns the dialect in which a request is sent that could go out in more
// than one: the wanted one, unless only keys of another are there.
func (c *Cache) DialectFor(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.Provider) (tenants.Provider, error) {
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return "", err
	}
	other := wanted
	for _, key := range settings.keys {
		if key.Disabled {
			continue
		}
		if key.Speaks(wanted) {
			return wanted, nil
		}
		if other == wanted {
			other = key.Provider
		}
	}
	return other, nil
}

// Listed returns every key that a request for models goes to, each with the test
// whether a model of its list is the key's to answer.
func (c *Cache) Listed(ctx context.Context, workspace tenants.WorkspaceID, dialect tenants.Provider, choice Choice) ([]Listed, error) {
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return nil, err
	}
	var all []Listed
	for i, key := range settings.keys {
		only := tenants.Asked{Dialect: dialect, Key: choice.Provider}
		if _, err := tenants.Route(settings.keys[i:i+1], only); err != nil {
			continue
		}
		all = append(all, Listed{
			Target: settings.target(i, only), Whole: len(key.Models) == 0, Named: exactly(key.Models),
			Takes: func(model string) bool {
				at, err := tenants.Route(settings.keys, tenants.Asked{Dialect: dialect, Key: choice.Provider, Model: model})
				return err == nil && at == i
			},
		})
	}
	if len(all) == 0 {
		return nil, tenants.ErrNoProvider
	}
	return all, nil
}

// Listed is a key whose models are listed.
type Listed struct {
	Target upstream.Target
	Whole  bool     // every model of its list is, unless another key claims it
	Named  []string // models that people named in full: there are providers that do not list them
	Takes  func(model string) bool
}

// exactly returns the patterns that are names.
func exactly(patterns []string) []string {
	return slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool { return strings.Contains(pattern, "*") })
}
