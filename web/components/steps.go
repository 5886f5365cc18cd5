package components

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/tenants"
	"palimpsest/web/paths"
)

// StepsModel is a workspace's setup progress.
type StepsModel struct {
	Providers []string // names of providers with a stored key
	Keys      int      // working API keys
	First     string   // summary of the newest request; "" if none came yet
	Request   string   // path of that request; "" for no link
	Bare      bool     // without links, because they would lead away from the page's subject
}

// NewSteps returns the setup steps of a workspace with these keys. active is the number of working API keys;
// newest is the newest request, or nil before the first.
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

// Received summarizes a request that someone waited for.
func Received(exchange *tenants.Exchange) string {
	return fmt.Sprintf("From %s to %s, answered with %d in %s.", ClientName(exchange.Request.Client), exchange.Request.Model, exchange.Answer.Status, took(&exchange.Times))
}

// path is the address that reloads the steps.
func (m StepsModel) path() string {
	if m.Bare {
		return paths.FirstRequestBare
	}
	return paths.FirstRequest
}

// done counts the completed steps.
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

func took(times *tenants.ExchangeTimes) string { return Millis(times.Duration) + " ms" }
