package providers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// typed is a form's input, except the key.
type typed struct {
	Provider, Name, BaseURL, Region, Auth, Order, Weight, Wait, Models, Headers string
	Both, Default, Enabled                                                      bool
}

func readForm(c echo.Context) typed {
	return typed{
		Provider: c.FormValue("provider"), Name: c.FormValue("name"), BaseURL: c.FormValue("base_url"), Region: c.FormValue("region"), Auth: c.FormValue("auth"),
		Order: c.FormValue("order"), Weight: c.FormValue("weight"), Wait: c.FormValue("wait_seconds"), Models: c.FormValue("models"), Headers: c.FormValue("headers"),
		Both: c.FormValue("both") != "", Default: c.FormValue("default") != "", Enabled: c.FormValue("enabled") != "",
	}
}

// fromPreset returns a form filled in from a preset.
func fromPreset(id string) typed {
	preset, known := tenants.PresetOf(id)
	if !known {
		return typed{Provider: string(tenants.ProviderAnthropic)}
	}
	return typed{Provider: preset.ID, BaseURL: preset.BaseURL, Auth: string(preset.Auth), Models: strings.Join(preset.Models, "\n"), Both: preset.Both}
}

// typedOf returns the form of an existing key.
func typedOf(key tenants.ProviderKey) typed {
	lines := make([]string, len(key.Headers))
	for i, header := range key.Headers {
		lines[i] = header.Name + ": " + header.Value
	}
	return typed{
		Name: key.Name, Auth: string(key.Auth), Order: strconv.Itoa(key.Order), Weight: strconv.Itoa(max(1, key.Weight)), Wait: waitText(key.Wait), Models: strings.Join(key.Models, "\n"), Headers: strings.Join(lines, "\n"),
		Both: key.Both, Default: key.Default, Enabled: !key.Disabled,
	}
}

// waitText returns a wait in the form's format.
func waitText(wait time.Duration) string {
	if wait == 0 {
		return ""
	}
	return strconv.Itoa(int(wait / time.Second))
}

// wanted returns the form's key.
func (t typed) wanted(by uuid.UUID) (tenants.ProviderKey, error) {
	routing, headers, err := t.parsed()
	return tenants.ProviderKey{
		Provider: tenants.Provider(t.Provider), Both: t.Both, Name: t.Name, BaseURL: t.BaseURL, Region: t.Region, Auth: tenants.Auth(t.Auth),
		Headers: headers, ProviderKeyRouting: routing, CreatedBy: by,
	}, err
}

// change returns a form's changes to a key.
func (t typed) change() (tenants.ProviderKeyChange, error) {
	routing, headers, err := t.parsed()
	auth, disabled := tenants.Auth(t.Auth), !t.Enabled
	return tenants.ProviderKeyChange{
		Name: &t.Name, Both: &t.Both, Auth: &auth, Headers: &headers, Models: &routing.Models, Order: &routing.Order, Weight: &routing.Weight,
		Default: &t.Default, Disabled: &disabled, Wait: &routing.Wait,
	}, err
}

func (t typed) parsed() (routing tenants.ProviderKeyRouting, headers []tenants.Header, err error) {
	routing = tenants.ProviderKeyRouting{Models: strings.Split(t.Models, "\n"), Default: t.Default}
	if routing.Order, err = number("order", t.Order); err != nil {
		return routing, nil, err
	}
	if routing.Weight, err = number("weight", t.Weight); err != nil {
		return routing, nil, err
	}
	seconds, err := number("wait_seconds", t.Wait)
	if err != nil {
		return routing, nil, err
	}
	routing.Wait = time.Duration(seconds) * time.Second
	for line := range strings.Lines(t.Headers) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if !found {
			return routing, nil, tenants.Invalid{Field: "headers", Message: fmt.Sprintf("line %.40q is not of the form Name: value", line)}
		}
		headers = append(headers, tenants.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	return routing, headers, nil
}

// number parses an optional field.
func number(field, text string) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0, tenants.Invalid{Field: field, Message: "must be a whole number"}
	}
	return number, nil
}

// formModel is the form to add or edit a key.
type formModel struct {
	Key                                                                               *tenants.ProviderKey // the key being edited; nil for a new one
	Presets                                                                           []tenants.Preset
	Chosen                                                                            tenants.Preset // zero if absent
	Provider, Name, Secret, BaseURL, Region, Auth, Order, Weight, Wait, Models, Lines components.FieldModel
	Both, Default, Enabled                                                            bool
	Open                                                                              bool           // the rarely used fields are shown
	Preset                                                                            tenants.Preset // of the chosen provider or the key; zero if absent
}

// newAddForm returns the form with the input, except the key, and its errors.
func newAddForm(presets []tenants.Preset, typed typed, err error) *formModel {
	form := newForm(typed)
	form.Presets = presets
	form.Chosen, _ = tenants.PresetOf(typed.Provider)
	form.adapt(form.Chosen)
	form.explain(err)
	return form
}

// newEditForm is newAddForm for an existing key.
func newEditForm(key tenants.ProviderKey, typed typed, err error) *formModel {
	form := newForm(typed)
	form.Key, form.Open = &key, true
	form.adapt(key.MadeFrom())
	form.explain(err)
	return form
}

func newForm(typed typed) *formModel {
	return &formModel{
		Provider: components.FieldModel{Label: "Provider", Name: "provider", Value: typed.Provider},
		Name:     components.FieldModel{Label: "Name", Name: "name", Value: typed.Name, Hint: "Shown in lists. Requests can choose the key by this name with X-Palimpsest-Provider."},
		Secret:   components.FieldModel{Label: "Key", Name: "key", Hint: "Stored encrypted. Only its last four characters are shown again."},
		BaseURL:  components.FieldModel{Label: "Base URL", Name: "base_url", Value: typed.BaseURL, Hint: "Optional. Leave it empty to use the provider’s own address."},
		Region:   components.FieldModel{Label: "Region", Name: "region", Value: typed.Region, Hint: "Of AWS, such as us-east-1. It becomes part of the base URL."},
		Auth:     components.FieldModel{Label: "Key header", Name: "auth", Value: typed.Auth},
		Order:    components.FieldModel{Label: "Order", Name: "order", Value: typed.Order, Hint: "Keys with lower numbers are tried first."},
		Weight:   components.FieldModel{Label: "Weight", Name: "weight", Value: typed.Weight, Hint: "From 1 to 100, 1 if empty. With failover on, keys of the same order and base URL share new sessions in proportion to their weights."},
		Wait:     components.FieldModel{Label: "Longest wait for an answer", Name: "wait_seconds", Value: typed.Wait, Hint: "In seconds, until the answer begins. A lower value fails sooner; the provider may still charge for a late answer. Leave it empty to wait as long as the client."},
		Models:   components.FieldModel{Label: "Models", Name: "models", Value: typed.Models, Hint: "One per line. * matches any characters: gpt-*. Leave it empty for every model that no other key lists."},
		Lines:    components.FieldModel{Label: "More headers", Name: "headers", Value: typed.Headers, Hint: "Name: value, one per line. Don’t enter secrets, because headers are stored in plain text."},
		Both:     typed.Both, Default: typed.Default, Enabled: typed.Enabled,
	}
}

// adapt adapts the form to a preset.
func (f *formModel) adapt(preset tenants.Preset) {
	f.Preset = preset
	if f.HasKinds() {
		f.Auth.Label, f.Auth.Hint = "Kind of key", "It decides what to enter below."
	}
	if preset.Needs != "" {
		f.Open, f.Lines.Hint = true, "Enter "+preset.Needs+" here. "+f.Lines.Hint
	}
	if preset.OnGoogle() {
		f.Region.Hint = "A location of Google Cloud, such as us-east5 or global. It becomes part of the base URL."
		f.Secret.Hint = "The whole JSON file of a service account’s key. Stored encrypted; only the end of its id is shown again."
	}
}

// HasKinds reports whether the preset has kinds of keys of its own.
func (f *formModel) HasKinds() bool { return len(f.Preset.Auths) > 0 }

// explain attaches an error to its field.
func (f *formModel) explain(err error) {
	components.FieldErrors(err, &f.Provider, &f.Name, &f.Secret, &f.BaseURL, &f.Region, &f.Auth, &f.Order, &f.Weight, &f.Wait, &f.Models, &f.Lines)
	f.Open = f.Open || f.Auth.Error+f.Order.Error+f.Weight.Error+f.Wait.Error+f.Models.Error+f.Lines.Error != ""
}

// choices are the providers of stored keys.
func (f *formModel) choices() []components.Option {
	options := make([]components.Option, len(f.Presets))
	for i, preset := range f.Presets {
		options[i] = components.Option{Value: preset.ID, Label: preset.Title}
		if preset.ID == string(preset.Provider) {
			options[i].Label += ", or an API that speaks its format"
		}
	}
	return options
}

// auths are the ways to send the key.
func (f *formModel) auths() []components.Option {
	if f.HasKinds() {
		options := make([]components.Option, len(f.Preset.Auths))
		for i, auth := range f.Preset.Auths {
			options[i] = components.Option{Value: string(auth), Label: kindOfKey(auth)}
		}
		return options
	}
	return []components.Option{
		{Value: string(tenants.AuthUsual), Label: "The format’s usual header"}, {Value: string(tenants.AuthBearer), Label: "Authorization: Bearer"},
		{Value: string(tenants.AuthXAPIKey), Label: "x-api-key"}, {Value: string(tenants.AuthAPIKey), Label: "api-key"},
		{Value: string(tenants.AuthGoogAPIKey), Label: "x-goog-api-key"},
	}
}

// kindOfKey describes a kind of key.
func kindOfKey(auth tenants.Auth) string {
	switch auth {
	case tenants.AuthSigV4:
		return "AWS access key: ACCESS_KEY_ID:SECRET_ACCESS_KEY"
	case tenants.AuthEntra:
		return "Microsoft Entra ID: TENANT_ID:CLIENT_ID:CLIENT_SECRET"
	case tenants.AuthGoogle:
		return "Service account’s key (JSON)"
	case tenants.AuthBearer:
		return "API key, as a bearer token"
	default:
		return "API key"
	}
}

// otherDialect names the second dialect that a key can accept; "" if it can accept only one.
func (f *formModel) otherDialect() string {
	provider := f.Chosen.Provider
	if f.Key != nil {
		provider = f.Key.Provider
	}
	both := tenants.ProviderKey{Provider: provider, Both: provider != tenants.ProviderGemini}
	for _, other := range both.Dialects() {
		if other != provider {
			return other.Title()
		}
	}
	return ""
}

// replaceModel is the form to replace a key's secret.
type replaceModel struct {
	Key             tenants.ProviderKey
	Secret, BaseURL components.FieldModel
}

func newReplaceForm(key tenants.ProviderKey, baseURL string, err error) *replaceModel {
	form := newForm(typed{BaseURL: baseURL})
	form.explain(err)
	form.Secret.Label, form.BaseURL.Hint = "New key", "The address that gets the new key. It can only change together with the key."
	return &replaceModel{Key: key, Secret: form.Secret, BaseURL: form.BaseURL}
}

// removeModel is the question whether to remove a key.
type removeModel struct {
	Key  tenants.ProviderKey
	Name components.FieldModel
}

func newRemoveForm(key tenants.ProviderKey, name string, err error) *removeModel {
	field := components.FieldModel{Label: "Name", Name: "name", Value: name, Hint: "Type " + key.Name + " to remove it."}
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		field.Error = components.FieldError(field.Label, invalid.Message)
	}
	return &removeModel{Key: key, Name: field}
}
