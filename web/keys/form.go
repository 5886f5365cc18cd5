package keys

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// formModel is the form to create or change a key.
type formModel struct {
	Title, Subtitle string
	Action, Submit  string

	Name     components.FieldModel
	Expiry   components.FieldModel
	Expiries []components.Option
	Scopes   []checkModel // empty if they can't be changed
	ScopeBad string       // their error; "" if valid
	Texts    []components.FieldModel
	Numbers  []components.FieldModel
	Checks   []checkModel
	Private  components.FieldModel
	Privates []components.Option
	Pipeline components.FieldModel
	Advanced bool // the limits are unfolded
}

// checkModel is a checkbox.
type checkModel struct {
	Name, Value, Label, Hint string
	On                       bool
}

// ID returns the id of the box.
func (c checkModel) ID() string { return "field-" + c.Name + "-" + c.Value }

// keepExpiry is the choice to keep a key's expiry.
const keepExpiry = "keep"

// newForm returns the form for a new key with the input and its errors.
func newForm(typed url.Values, err error) *formModel {
	form := &formModel{
		Title: "Create an API key", Subtitle: "Its secret is shown once.", Action: paths.Keys, Submit: "Create key",
		Expiries: expiries(),
	}
	chosen := typed["scopes"]
	if len(chosen) == 0 {
		chosen = []string{string(tenants.ScopeProxy)}
	}
	for _, scope := range []struct {
		scope tenants.Scope
		hint  string
	}{
		{tenants.ScopeProxy, "send requests to models"},
		{tenants.ScopeRecall, "search and read the archive"},
		{tenants.ScopeRead, "read the workspace by the JSON API"},
		{tenants.ScopeSessions, "compact sessions, undo that, and pin turns, by the JSON API"},
		{tenants.ScopeManage, "change the workspace by the JSON API"},
	} {
		form.Scopes = append(form.Scopes, checkModel{
			Name: "scopes", Value: string(scope.scope), Label: string(scope.scope), Hint: scope.hint, On: slices.Contains(chosen, string(scope.scope)),
		})
	}
	return form.with(typed, err)
}

// editForm returns the form to change a key.
func editForm(key tenants.APIKey, zone *time.Location, typed url.Values, err error) *formModel {
	form := &formModel{
		Title: "Edit " + key.Name, Subtitle: "Changes apply to requests within two seconds.", Action: paths.EditKey(key.ID), Submit: "Save key",
		Expiries: append([]components.Option{{Value: keepExpiry, Label: "unchanged: " + endOf(key, zone)}}, expiries()...),
	}
	if typed == nil {
		typed = valuesOf(key)
	}
	form = form.with(typed, err)
	form.Advanced = true
	return form
}

// endOf formats a key's expiry.
func endOf(key tenants.APIKey, zone *time.Location) string {
	if key.ExpiresAt == nil {
		return "never"
	}
	return components.DayIn(*key.ExpiresAt, zone)
}

// with fills a form with the input and its errors.
func (f *formModel) with(typed url.Values, err error) *formModel {
	field := func(name, label, hint string) components.FieldModel {
		return components.FieldModel{Label: label, Name: name, Value: typed.Get(name), Hint: hint}
	}
	f.Name = field("name", "Name", "The device or program that uses it: laptop, ci-agents.")
	f.Expiry = field("expiry", "Expires", "")
	f.Texts = []components.FieldModel{
		field("allowed_models", "Models", "Names or patterns with *, separated by commas: claude-*, gpt-5.5. Leave it empty to allow all."),
		field("allowed_endpoints", "Endpoints", "Paths or patterns: /v1/messages*. Leave it empty to allow all."),
		field("allowed_ips", "Addresses", "IP addresses or networks of clients: 203.0.113.7, 10.0.0.0/8. Leave it empty to allow all."),
	}
	f.Texts = append(f.Texts, field("browser_origins", "Browser origins", "Websites whose scripts may use the key: https://chat.example.com. Anyone who opens such a page can copy the key. Leave it empty to use the workspace’s list."))
	f.Numbers = nil
	for _, limit := range tenants.QuotaLimits() {
		f.Numbers = append(f.Numbers, field(limit.Name, limit.Label, limit.Hint))
	}
	f.Checks = []checkModel{
		{Name: "lock_overrides", Value: "yes", Label: "Lock overrides", Hint: "Request headers may not change pipeline or provider.", On: typed.Has("lock_overrides")},
		{Name: "no_store", Value: "yes", Label: "Keep figures only", Hint: "Conversations with this key are not archived or searched, so they are not compressed either.", On: typed.Has("no_store")},
		{Name: "allow_unpriced", Value: "yes", Label: "Allow models without a price", Hint: "Otherwise a key with a budget refuses models and endpoints without a known price.", On: typed.Has("allow_unpriced")},
	}
	f.Private = field("private_base_url", "Private addresses", "Whether X-Palimpsest-Base-Url may name a private address, if this installation allows them.")
	f.Privates = []components.Option{
		{Value: "", Label: "If the person behind the key may manage provider keys"}, {Value: "yes", Label: "Allowed"}, {Value: "no", Label: "Not allowed"},
	}
	f.Pipeline = field("pipeline", "Pipeline", "Settings in YAML that override the workspace’s pipeline. Leave it empty to use the workspace’s.")
	invalid, is := errors.AsType[tenants.Invalid](err)
	if !is {
		return f
	}
	all := []*components.FieldModel{&f.Name, &f.Expiry, &f.Private, &f.Pipeline}
	for i := range f.Texts {
		all = append(all, &f.Texts[i])
	}
	for i := range f.Numbers {
		all = append(all, &f.Numbers[i])
	}
	f.Advanced = true
	for _, known := range all {
		if known.Name == strings.Split(invalid.Field, ".")[0] {
			known.Error = components.FieldError(known.Label, invalid.Message)
			f.Advanced = known != &f.Name && known != &f.Expiry
		}
	}
	if invalid.Field == "scopes" {
		f.ScopeBad = components.FieldError("Scopes", invalid.Message)
	}
	return f
}

// valuesOf returns a key as form values.
func valuesOf(key tenants.APIKey) url.Values {
	limits := key.Limits
	values := url.Values{
		"name": {key.Name}, "expiry": {keepExpiry}, "pipeline": {key.Pipeline},
		"allowed_models": {strings.Join(limits.Models, ", ")}, "allowed_endpoints": {strings.Join(limits.Endpoints, ", ")},
		"allowed_ips": {strings.Join(limits.AddressList(), ", ")}, "browser_origins": {strings.Join(limits.Origins, ", ")},
	}
	for _, limit := range tenants.QuotaLimits() {
		if amount := limit.Of(limits.Quota); amount > 0 {
			values.Set(limit.Name, limit.Text(amount))
		}
	}
	for name, on := range map[string]bool{"lock_overrides": limits.LockOverrides, "no_store": limits.NoStore, "allow_unpriced": limits.AllowUnpriced} {
		if on {
			values.Set(name, "yes")
		}
	}
	if private := limits.PrivateBaseURL; private != nil {
		values.Set("private_base_url", map[bool]string{true: "yes", false: "no"}[*private])
	}
	return values
}

// readKey parses a form into a key. The error is a tenants.Invalid.
func readKey(typed url.Values, key tenants.APIKey, now time.Time) (tenants.APIKey, error) {
	key.Name, key.Pipeline = typed.Get("name"), strings.TrimSpace(typed.Get("pipeline"))
	if expiry := typed.Get("expiry"); expiry != keepExpiry {
		life, err := days(expiry)
		if err != nil {
			return key, err
		}
		key.ExpiresAt = nil
		if life > 0 {
			end := now.UTC().AddDate(0, 0, life) // days of 24 hours, regardless of this machine's zone
			key.ExpiresAt = &end
		}
	}
	private := key.Limits.PrivateBaseURL
	if typed.Has("private_base_url") {
		if private = nil; typed.Get("private_base_url") != "" {
			allowed := typed.Get("private_base_url") == "yes"
			private = &allowed
		}
	}
	var err error
	key.Limits, err = readLimits(typed)
	key.Limits.PrivateBaseURL = private
	return key, err
}

func readLimits(typed url.Values) (tenants.Limits, error) {
	limits := tenants.Limits{
		Models: listOf(typed.Get("allowed_models")), Endpoints: listOf(typed.Get("allowed_endpoints")), LockOverrides: typed.Has("lock_overrides"), NoStore: typed.Has("no_store"),
		Origins: tenants.Origins(listOf(typed.Get("browser_origins"))).Normal(),
		Quota:   tenants.Quota{AllowUnpriced: typed.Has("allow_unpriced")},
	}
	var err error
	if limits.Addresses, err = tenants.ParseAddresses(listOf(typed.Get("allowed_ips"))); err != nil {
		return limits, err
	}
	for _, limit := range tenants.QuotaLimits() {
		amount, err := limit.Parse(typed.Get(limit.Name))
		if err != nil {
			return limits, err
		}
		limit.Set(&limits.Quota, amount)
	}
	return limits, nil
}

// listOf splits text at commas, spaces and line ends.
func listOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
}

// summary describes a key's limits in a few words; "" if absent.
func summary(key tenants.APIKey) string {
	limits := key.Limits
	var parts []string
	add := func(is bool, format string, values ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, values...))
		}
	}
	add(len(limits.Models) > 0, "%s", strings.Join(limits.Models, ", "))
	add(len(limits.Endpoints) > 0, "%s", strings.Join(limits.Endpoints, ", "))
	add(len(limits.Addresses) > 0, "%s", components.Plural(int64(len(limits.Addresses)), "network"))
	for _, limit := range tenants.QuotaLimits() {
		add(limit.Of(limits.Quota) > 0, "%s", components.Limit(&limit, limits.Quota))
	}
	add(limits.NoStore, "figures only")
	return strings.Join(parts, " · ")
}
