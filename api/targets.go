package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// target returns where a request in a dialect goes: to the provider that it brings a
// key for, or with one of the workspace's keys. model is asked only where the answer
// depends on it; it returns an empty name for a request that names none. The errors
// are those of tenants.Route, tenants.Invalid and those of model.
func (s *Settings) target(ctx context.Context, workspace tenants.WorkspaceID, dialect tenants.Provider, asked controls, model func() (string, error)) (upstream.Target, error) {
	if asked.providerKey != "" {
		return s.broughtAlong(dialect, asked, model)
	}
	settings, err := s.of(ctx, workspace)
	if err != nil {
		return upstream.Target{}, err
	}
	wanted := tenants.Asked{Dialect: dialect, Key: asked.provider}
	if settings.looksAtModels() {
		if wanted.Model, err = model(); err != nil {
			return upstream.Target{}, err
		}
	}
	i, err := tenants.Route(settings.keys, wanted)
	if err != nil {
		return upstream.Target{}, err
	}
	return settings.target(i, wanted), nil
}

// broughtAlong returns the target that a request names itself.
func (s *Settings) broughtAlong(dialect tenants.Provider, asked controls, model func() (string, error)) (upstream.Target, error) {
	target := upstream.Target{Provider: dialect, BaseURL: asked.baseURL, Key: asked.providerKey}
	if asked.baseURL == "" {
		return target, nil
	}
	if err := upstream.VerifyBaseURL(asked.baseURL, s.private); err != nil {
		return upstream.Target{}, err
	}
	var err error
	if upstream.NeedsModel(asked.baseURL) {
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

// dialectFor returns the dialect in which a request is sent that could go out in more
// than one: the wanted one, unless only keys of another are there.
func (s *Settings) dialectFor(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.Provider) (tenants.Provider, error) {
	settings, err := s.of(ctx, workspace)
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

// listed returns every key that a request for models goes to, each with the test
// whether a model of its list is the key's to answer.
func (s *Settings) listed(ctx context.Context, workspace tenants.WorkspaceID, dialect tenants.Provider, asked controls) ([]listed, error) {
	settings, err := s.of(ctx, workspace)
	if err != nil {
		return nil, err
	}
	var all []listed
	for i, key := range settings.keys {
		only := tenants.Asked{Dialect: dialect, Key: asked.provider}
		if _, err := tenants.Route(settings.keys[i:i+1], only); err != nil {
			continue
		}
		all = append(all, listed{
			target: settings.target(i, only), whole: len(key.Models) == 0, named: exactly(key.Models),
			takes: func(model string) bool {
				at, err := tenants.Route(settings.keys, tenants.Asked{Dialect: dialect, Key: asked.provider, Model: model})
				return err == nil && at == i
			},
		})
	}
	if len(all) == 0 {
		return nil, tenants.ErrNoProvider
	}
	return all, nil
}

// listed is a key whose models are listed.
type listed struct {
	target upstream.Target
	whole  bool     // every model of its list is, unless another key claims it
	named  []string // models that people named in full: there are providers that do not list them
	takes  func(model string) bool
}

// exactly returns the patterns that are names.
func exactly(patterns []string) []string {
	return slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool { return strings.Contains(pattern, "*") })
}

// modelIn returns what tells the model that a body names.
func modelIn(body []byte) func() (string, error) {
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

const (
	maxPeek = 64 << 10 // bytes of a body that is relayed that are looked at for its model
	minPeek = 256      // bytes that must have come before it is looked at again
)

// modelAhead returns what tells the model that a request's body names near its
// beginning, and leaves the body whole. Only JSON is looked at.
func modelAhead(request *http.Request) func() (string, error) {
	return func() (string, error) {
		kind, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type"))
		if request.Body == nil || kind != "application/json" || isEncoding(request.Header.Get("Content-Encoding")) {
			return "", nil
		}
		head, model, seen := make([]byte, 0, maxPeek), "", 0
		var failure error
		for model == "" && failure == nil && len(head) < cap(head) {
			var n int
			n, failure = request.Body.Read(head[len(head):cap(head)])
			head = head[:len(head)+n]
			if failure != nil || len(head)-seen >= minPeek {
				model, _ = modelIn(head)()
				seen = len(head)
			}
		}
		rest := io.Reader(request.Body)
		if failure != nil {
			rest = ended{failure}
		}
		request.Body = &resumed{Reader: io.MultiReader(bytes.NewReader(head), rest), Closer: request.Body}
		return model, nil
	}
}

// ended is a reader that has come to its end, or to a fault.
type ended struct{ err error }

// Read implements io.Reader.
func (e ended) Read([]byte) (int, error) { return 0, e.err }
