package tenants_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// routed are keys in the order in which they are asked.
func routed() []tenants.ProviderKey {
	return []tenants.ProviderKey{
		{ID: uuid.New(), Name: "off", Provider: tenants.ProviderOpenAI, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"*"}, Disabled: true}},
		{ID: uuid.New(), Name: "small", Provider: tenants.ProviderOpenAI, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"gpt-*-mini", "o4-mini"}}},
		{ID: uuid.New(), Name: "claude", Provider: tenants.ProviderAnthropic, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"claude-*"}}},
		{ID: uuid.New(), Name: "rest", Provider: tenants.ProviderOpenAI, Preset: "groq"},
		{ID: uuid.New(), Name: "local", Provider: tenants.ProviderOpenAI, Both: true, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"qwen*"}}},
	}
}

func TestRequestsGoToTheFirstKeyThatNamesTheirModel(t *testing.T) {
	t.Parallel()
	keys := routed()
	for _, test := range []struct{ dialect, named, model, want string }{
		{"openai", "", "gpt-5.5-mini", "small"},
		{"openai", "", "GPT-5.5-Mini", "small"},
		{"openai", "", "o4-mini", "small"},
		{"openai", "", "gpt-5.5", "rest"}, // nobody names it
		{"openai", "", "", "rest"},
		{"openai", "", "qwen3-coder", "local"},
		{"openai", "groq", "qwen3-coder", "rest"},
		{"openai", "small", "gpt-5.5-mini", "small"},
		{"openai", keys[4].ID.String(), "qwen3-coder", "local"},
		{"anthropic", "", "claude-opus-5", "claude"},
		{"anthropic", "", "qwen3-coder", "local"}, // it speaks both
		{"anthropic", "", "", "claude"},
		{"anthropic", "anthropic", "claude-opus-5", "claude"},
	} {
		i, err := tenants.Route(keys, tenants.Asked{Dialect: tenants.Provider(test.dialect), Key: test.named, Model: test.model})
		if err != nil || keys[i].Name != test.want {
			t.Errorf("%+v: %d, %v", test, i, err)
		}
	}
}

func TestModelThatNoKeyTakesIsToldWithThoseThatAreTaken(t *testing.T) {
	t.Parallel()
	_, err := tenants.Route(routed(), tenants.Asked{Dialect: tenants.ProviderAnthropic, Model: "gpt-5.5"})
	taken, is := errors.AsType[tenants.NotTaken](err)
	if !is || strings.Join(taken.Takes, " ") != "claude-* qwen*" || !strings.Contains(err.Error(), `"gpt-5.5"`) || !errors.Is(err, tenants.ErrNoProvider) {
		t.Errorf("error %v", err)
	}
	for _, asked := range []tenants.Asked{
		{Dialect: tenants.ProviderAnthropic, Key: "rest"}, {Dialect: tenants.ProviderOpenAI, Key: "off"}, {Dialect: tenants.ProviderOpenAI, Key: "nobody"},
	} {
		if _, err := tenants.Route(routed(), asked); !errors.Is(err, tenants.ErrNoProvider) {
			t.Errorf("%+v: %v", asked, err)
		}
	}
	if _, err := tenants.Route(nil, tenants.Asked{Dialect: tenants.ProviderOpenAI}); !errors.Is(err, tenants.ErrNoProvider) {
		t.Errorf("no keys: %v", err)
	}
}

func TestDefaultTakesWhatNoKeyNames(t *testing.T) {
	t.Parallel()
	keys := routed()
	keys[4].Default = true
	for model, want := range map[string]string{"gpt-5.5": "local", "": "local", "gpt-5.5-mini": "small"} {
		if i, err := tenants.Route(keys, tenants.Asked{Dialect: tenants.ProviderOpenAI, Model: model}); err != nil || keys[i].Name != want {
			t.Errorf("%q: %d, %v", model, i, err)
		}
	}
}

func TestStarsStandForAnyCharacters(t *testing.T) {
	t.Parallel()
	for pattern, names := range map[string]map[string]bool{
		"gpt-5":      {"gpt-5": true, "gpt-5.5": false, "my-gpt-5": false},
		"gpt-*":      {"gpt-": true, "gpt-5": true, "gpt5": false},
		"*":          {"anything/at-all": true},
		"*/claude-*": {"anthropic/claude-opus-5": true, "claude-opus-5": false},
		"a*b*c":      {"abc": true, "a-b-b-c": true, "acb": false, "ab": false},
		"a**b":       {"ab": true, "a-b": true},
		"ab*ba":      {"abba": true, "aba": false},
	} {
		for name, want := range names {
			if got := (tenants.ProviderKey{ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{pattern}}}).Names(name); got != want {
				t.Errorf("%q names %q: %t", pattern, name, got)
			}
		}
	}
}

func TestPresetsAreComplete(t *testing.T) {
	t.Parallel()
	for _, preset := range tenants.Presets() {
		if found, ok := tenants.PresetOf(preset.ID); !ok || found.ID != preset.ID {
			t.Errorf("%s is not found", preset.ID)
		}
		if preset.Title == "" || !preset.Provider.IsKnown() || preset.Private != strings.HasPrefix(preset.BaseURL, "http://localhost") {
			t.Errorf("%+v", preset)
		}
	}
	if _, ok := tenants.PresetOf("nobody"); ok {
		t.Error("an unknown preset")
	}
}

func TestChangeLeavesWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	key := tenants.ProviderKey{Name: "a", BaseURL: "https://example.com", ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"m"}, Order: 3, Default: true}, ProviderKeySecret: tenants.ProviderKeySecret{Last4: "wxyz"}}
	name, off, none := "b", true, []string{}
	changed := tenants.ProviderKeyChange{Name: &name, Disabled: &off, Models: &none}.Apply(key)
	if changed.Name != "b" || !changed.Disabled || len(changed.Models) != 0 || changed.Order != 3 || !changed.Default || changed.BaseURL != key.BaseURL {
		t.Errorf("%+v", changed)
	}
	fields := changed.Fields()
	if fields["enabled"] != "false" || fields["key"] != "…wxyz" || fields["order"] != "3" || fields["default"] != "true" {
		t.Errorf("fields %v", fields)
	}
}
