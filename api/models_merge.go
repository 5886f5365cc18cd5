package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"palimpsest/api/proxysettings"
	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// targets returns the keys to ask: all candidates for the list, or the key that serves a single model.
func (l lister) targets(request *http.Request, event *RequestLog, admission *admission, wanted tenants.Provider) ([]proxysettings.Listed, error) {
	ctx, dialect := request.Context(), wanted
	if admission.asked.choice.Key == "" {
		var err error
		if dialect, err = l.gate.Settings.DialectFor(ctx, admission.key.Workspace, wanted); err != nil {
			return nil, err
		}
	}
	model := strings.Trim(strings.TrimPrefix(request.URL.Path, modelsPath), "/")
	if admission.asked.choice.Key != "" || model != "" {
		if err := l.gate.route(ctx, event, admission, dialect, func() (string, error) { return model, nil }); err != nil {
			return nil, err
		}
		admission.target.Model = "" // the path contains it
		return []proxysettings.Listed{{Target: admission.target, Whole: true}}, nil
	}
	all, err := l.gate.Settings.Listed(ctx, admission.key.Workspace, dialect, admission.asked.choice)
	if err != nil {
		return nil, err
	}
	event.Provider = string(dialect)
	if len(all) == 1 {
		event.ProviderKey = all[0].Target.KeyID
	}
	return all, nil
}

// list asks all keys for their models at once, and returns one answer in the wanted shape.
func (l lister) list(request *http.Request, wanted tenants.Provider, admission admission, keys []proxysettings.Listed) (modelsAnswer, error) {
	if len(keys) == 1 && keys[0].Whole {
		return l.of(request, wanted, admission, keys[0].Target)
	}
	whole := request.Clone(request.Context())
	whole.URL.RawQuery = ""
	if dialect, known := upstream.DialectOf(wanted); known {
		whole.URL.RawQuery = dialect.ModelsQuery // pages of several lists cannot be merged
	}
	answers, failures := make([]modelsAnswer, len(keys)), make([]error, len(keys))
	var asking sync.WaitGroup
	for i, key := range keys {
		asking.Go(func() { answers[i], failures[i] = l.of(whole, wanted, admission, key.Target) })
	}
	asking.Wait()
	return merged(wanted, keys, answers, failures)
}

// of returns the list from one key's provider, in the wanted shape.
func (l lister) of(request *http.Request, wanted tenants.Provider, admission admission, target upstream.Target) (modelsAnswer, error) {
	admission.target = target
	question := newModelsQuestion(request, wanted, admission)
	list, err := l.lists.get(request.Context(), question, l.now, func(ctx context.Context) (modelsAnswer, error) {
		return l.ask(ctx, question, target)
	})
	if err != nil || list.status != http.StatusOK || target.Provider == wanted {
		return list, err
	}
	if list.body, err = modelsAs(wanted, target.Provider, list.body); err != nil {
		return modelsAnswer{}, fmt.Errorf("%w: its list of models cannot be read: %w", upstream.ErrUnreachable, err)
	}
	return list, nil
}

// merged joins lists of models as their providers described them, and takes from each the models routed to
// its key. A failed provider doesn't affect the others; if all fail, the first failure is the answer.
func merged(wanted tenants.Provider, keys []proxysettings.Listed, answers []modelsAnswer, failures []error) (modelsAnswer, error) {
	shape := shapeOf(wanted)
	var entries []json.RawMessage
	oldest, good := time.Time{}, false
	for i, key := range keys {
		found := map[string]bool{}
		if failures[i] == nil && answers[i].status == http.StatusOK {
			good = true
			if oldest.IsZero() || answers[i].at.Before(oldest) {
				oldest = answers[i].at
			}
			for _, entry := range wire.Elements(wire.Get(answers[i].body, "data")) {
				if id := wire.Text(entry, "id"); key.Takes(id) && !found[id] {
					found[id] = true
					entries = append(entries, entry)
				}
			}
		}
		for _, name := range key.Named {
			if !found[name] && key.Takes(name) {
				entry, err := shape.entry(listedModel{ID: name, Name: name, Created: time.Unix(0, 0), Owner: "palimpsest"})
				if err != nil {
					return modelsAnswer{}, err
				}
				entries = append(entries, entry)
			}
		}
	}
	if !good {
		return answers[0], failures[0]
	}
	body, err := shape.list(entries)
	return modelsAnswer{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, body: body, at: oldest}, err
}
