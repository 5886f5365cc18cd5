package providers

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// model is the page.
type model struct {
	Keys      []tenants.ProviderKey
	MayChange bool
	Who       tenants.Principal
	Now       time.Time
	Added     string // name of the key that was just added; empty: none
	Removed   bool   // a key was just removed

	Form   *formModel           // the form to add a key; nil: closed
	Remove *tenants.ProviderKey // the key to remove; nil: none
	Result *result              // of a test; nil: none
}

// named returns the name of the key with an id.
func (m *model) named(id string) string {
	for _, key := range m.Keys {
		if key.ID.String() == id {
			return key.Name
		}
	}
	return ""
}

// result is the outcome of a test.
type result struct {
	ID   uuid.UUID // of the key
	OK   bool
	Text string
	Said string // by the provider; empty: nothing
}

// newResult returns what a test tells.
func newResult(id uuid.UUID, outcome tenants.ProviderKeyTest) *result {
	if !outcome.OK {
		return &result{ID: id, Text: outcome.Problem, Said: outcome.Said}
	}
	return &result{ID: id, OK: true, Text: fmt.Sprintf("The key works: the provider lists %s. It took %s ms.",
		components.Plural(int64(outcome.Models), "model"), components.Millis(outcome.Took))}
}

// typed is what was typed into the form, but for the key.
type typed struct{ Provider, Name, BaseURL string }

func (t typed) wanted(by uuid.UUID) tenants.ProviderKey {
	return tenants.ProviderKey{Provider: tenants.Provider(t.Provider), Name: t.Name, BaseURL: t.BaseURL, CreatedBy: by}
}

// formModel is the form to add a key.
type formModel struct{ Provider, Name, Key, BaseURL components.FieldModel }

// choices are the providers that a key can be stored for.
func choices() []components.Option {
	return []components.Option{
		{Value: string(tenants.ProviderAnthropic), Label: "Anthropic, or an API that speaks its format"},
		{Value: string(tenants.ProviderOpenAI), Label: "OpenAI, or an API that speaks its format"},
	}
}

// newForm returns the form with what was typed, but never the key, and what is
// wrong with it.
func newForm(typed typed, err error) *formModel {
	form := &formModel{
		Provider: components.FieldModel{Label: "Provider", Name: "provider", Value: typed.Provider},
		Name:     components.FieldModel{Label: "Name", Name: "name", Value: typed.Name, Hint: "Optional, to recognise it by: anthropic-prod."},
		Key:      components.FieldModel{Label: "Key", Name: "key", Hint: "Sealed before it is stored. Nobody can read it again, only its last four characters."},
		BaseURL:  components.FieldModel{Label: "Base URL", Name: "base_url", Value: typed.BaseURL, Hint: "Optional. Without it requests go to the provider’s own address."},
	}
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		for _, field := range []*components.FieldModel{&form.Provider, &form.Name, &form.Key, &form.BaseURL} {
			if field.Name == invalid.Field {
				field.Error = components.FieldError(field.Label, invalid.Message)
			}
		}
	}
	return form
}
