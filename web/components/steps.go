package components

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/tenants"
	"palimpsest/web/paths"
)

// StepsModel is how far a workspace has come with its set-up.
type StepsModel struct {
	Providers []string // names of those that a key is stored for
	Keys      int      // API keys that work
	First     string   // what is known of the newest request; empty if none has come
	Request   string   // path of that request; empty: no link
	Bare      bool     // without links, which would lead away from what the page shows
}

// NewSteps returns the steps of a workspace with these keys. active is the number
// of API keys that work; newest is the newest request, nil if none has come.
func NewSteps(providers []tenants.ProviderKey, active int, newest *tenants.Exchange) StepsModel {
	model := StepsModel{Keys: active}
	for _, key := range providers {
		if name := key.Provider.Title(); !slices.Contains(model.Providers, name) {
			model.Providers = append(model.Providers, name)
		}
	}
	if newest != nil {
		model.First = Received(newest)
	}
	return model
}

// Received says what is known of a request that was waited for.
func Received(exchange *tenants.Exchange) string {
	return fmt.Sprintf("From %s to %s, answered with %d in %s.", ClientName(exchange.Client), exchange.Model, exchange.Status, took(exchange))
}

// path is where the steps look again.
func (m StepsModel) path() string {
	if m.Bare {
		return paths.FirstRequestBare
	}
	return paths.FirstRequest
}

// done counts the steps that are behind the workspace.
func (m StepsModel) done() int {
	done := 0
	for _, is := range []bool{len(m.Providers) > 0, m.Keys > 0, m.First != ""} {
		if is {
			done++
		}
	}
	return done
}

func (m StepsModel) providers() string { return strings.Join(m.Providers, ", ") }

func took(exchange *tenants.Exchange) string { return Millis(exchange.Duration) + " ms" }
