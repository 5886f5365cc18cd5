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

// Choice holds a request's own settings for its target.
type Choice struct {
	Provider string           // name of one of the workspace's keys; "" for any
	Key      string           // of a provider, brought along by the request; "" for one of the workspace's
	BaseURL  string           // of Key; "" for the provider's own
	Own      http.Header      // the caller's own credential instead of Key, as sent; nil if it is in X-Palimpsest-Provider-Key
	Platform tenants.Platform // whose form the request has, so that only its keys serve it; "" for any
	Private  bool             // BaseURL may be on a private address, if the installation allows those
}

// Model returns the model that a request names; "" if absent. It may have to read the request's body.
type Model func() (string, error)

// ModelIn returns a Model for a body.
func ModelIn(body []byte) Model {
	return func() (string, error) {
		model := ""
		for name, value := range wire.Members(json.RawMessage(body)) {
			if string(name) == "model" { // the last of two counts, as everywhere
				model, _ = wire.String(value)
			}
		}
		return model, nil
	}
}

// ProviderOf returns the provider of a format's API.
func ProviderOf(codec wire.Codec) tenants.Provider { return tenants.Provider(codec.Traits().Provider) }

// Target returns the target of a request in a dialect: the provider of the request's own key, or one of the
// workspace's keys. It calls model only if the answer depends on it; model returns "" if the request doesn't
// name one. The errors are those of tenants.Route, tenants.Invalid, tenants.Forbidden and those of model.
func (c *Cache) Target(ctx context.Context, workspace tenants.WorkspaceID, dialect tenants.Provider, choice Choice, model Model) (upstream.Target, error) {
	routes, err := c.Routes(ctx, workspace, dialect, choice, model)
	if err != nil {
		return upstream.Target{}, err
	}
	return routes.Targets[0], nil
}

// Routes are the possible targets of a request.
type Routes struct {
	Targets  []upstream.Target // at least one; the first is preferred
	Equal    int               // number of leading Targets with the same order and base URL
	Failover tenants.Failover  // whether the request may use other targets than the first
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
	if choice.Platform != "" && choice.Key != "" {
		return Routes{}, tenants.Invalid{Field: "X-Palimpsest-Provider-Key", Message: "can't be sent with requests in a cloud's own form; store the key on the dashboard's Providers page"}
	}
	if choice.Key != "" {
		target, err := c.broughtAlong(dialect, choice, model)
		return Routes{Targets: []upstream.Target{target}, Equal: 1}, err
	}
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return Routes{}, err
	}
	wanted := tenants.Asked{Dialect: dialect, Key: choice.Provider, Platform: choice.Platform}
	if settings.looksAtModels() {
		if wanted.Model, err = model(); err != nil {
			return Routes{}, err
		}
	}
	places, err := tenants.Routes(settings.keys, wanted)
	if err != nil {
		return Routes{}, err
	}
	if settings.failover == tenants.FailoverOff {
		places = places[:1] // the others are never tried
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

// broughtAlong returns the target named by the request itself.
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

// target returns the key at an index as a request's target.
func (s *settings) target(i int, asked tenants.Asked) upstream.Target {
	return upstream.TargetOf(s.keys[i], asked.Dialect, s.secrets[i], asked.Model)
}

// looksAtModels reports whether a request's target depends on its model.
func (s *settings) looksAtModels() bool {
	return slices.ContainsFunc(s.keys, func(key tenants.ProviderKey) bool {
		return !key.Disabled && (len(key.Models) > 0 || upstream.NeedsModel(key.BaseURL))
	})
}

// DialectFor returns the dialect for a request that could use more than one: the wanted one, unless only keys
// of another exist. The Gemini API shares no path with the others.
func (c *Cache) DialectFor(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.Provider) (tenants.Provider, error) {
	if wanted == tenants.ProviderGemini {
		return wanted, nil
	}
	settings, err := c.of(ctx, workspace)
	if err != nil {
		return "", err
	}
	other := wanted
	for _, key := range settings.keys {
		if key.Disabled || key.Provider == tenants.ProviderGemini {
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

// Listed returns every key to ask for models, each with the test whether the key serves a model of its list.
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
			Target: settings.target(i, only), NoList: key.MadeFrom().NoList, Whole: len(key.Models) == 0, Named: exactly(key.Models),
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
	NoList bool     // its provider has no list of models
	Whole  bool     // it serves every model of its list, unless another key claims it
	Named  []string // models named in full by people, because some providers don't list them
	Takes  func(model string) bool
}

// exactly returns the patterns without a wildcard.
func exactly(patterns []string) []string {
	return slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool { return strings.Contains(pattern, "*") })
}
