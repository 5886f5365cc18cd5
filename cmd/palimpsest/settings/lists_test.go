package settings

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every setting that takes a list keeps all of its values, in their order, wherever each stands.
func TestSettingWithAListKeepsEveryValue(t *testing.T) {
	t.Parallel()
	prices := map[string]string{"STRIPE_API_KEY": "sk", "STRIPE_WEBHOOK_SECRET": "whsec_1", "STRIPE_PRO_PRICE": "price_1"}
	for name, c := range map[string]struct {
		values    []string
		separated string
		beside    map[string]string
		read      func(Config) []string
	}{
		"PALIMPSEST_SECRET_KEY": {values: []string{keyOf("a"), keyOf("b"), keyOf("c")}, separated: ",", read: func(config Config) []string {
			secrets, err := config.Secrets()
			if err != nil {
				t.Error(err)
			}
			return encoded(secrets)
		}},
		"PALIMPSEST_TRUSTED_PROXIES": {values: []string{"10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"}, separated: ", ", read: func(config Config) []string {
			networks, err := ReadNetworks(config.Serving.TrustedProxies)
			if err != nil {
				t.Error(err)
			}
			texts := make([]string, len(networks))
			for i, network := range networks {
				texts[i] = network.String()
			}
			return texts
		}},
		"PALIMPSEST_SIGNUP_DOMAINS":       {values: []string{"a.example", "b.example", "c.example"}, separated: ",", read: func(c Config) []string { return c.Accounts.SignUp.Domains }},
		"PALIMPSEST_SIGNUP_BLOCK_DOMAINS": {values: []string{"a.example", "b.example", "c.example"}, separated: " , ", read: func(c Config) []string { return c.Accounts.SignUp.Blocked }},
		"STRIPE_PRO_PRICE":                {values: []string{"price_1", "price_2", "price_3"}, separated: ", ", beside: prices, read: func(c Config) []string { return c.Billing.Catalog.Pro.Plan }},
		"STRIPE_TEAM_PRICE":               {values: []string{"price_1", "price_2", "price_3"}, separated: ",", beside: prices, read: func(c Config) []string { return c.Billing.Catalog.Team.Plan }},
		"DATABASE_URLS": {values: []string{"https://a.example=postgres://db1/a", "https://b.example=postgres://db1/b", "https://c.example=postgres://db2/a"}, separated: "\n", read: func(config Config) []string {
			var entries []string
			for _, one := range config.Each() {
				entries = append(entries, one.Serving.PublicURL+"="+one.Storage.DatabaseURL)
			}
			return entries
		}},
		"PALIMPSEST_PIPE": {values: []string{"ipc", "rehydrator", "patterns"}, separated: ",", read: func(c Config) []string { return strings.Split(c.Pipe, ",") }},
	} {
		for range c.values {
			c.values = append(c.values[1:], c.values[0])
			settings := map[string]string{}
			maps.Copy(settings, c.beside)
			settings[name] = strings.Join(c.values, c.separated)
			config, err := LoadConfig("", environment(settings))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := c.read(config); !slices.Equal(got, c.values) {
				t.Errorf("%s: %v, want %v", name, got, c.values)
			}
		}
	}
}

// A file with several master keys is read as the setting is.
func TestKeyFileKeepsEveryMasterKey(t *testing.T) {
	t.Parallel()
	config := Config{Storage: Storage{DataDir: t.TempDir()}}
	for _, keys := range [][]string{{keyOf("a"), keyOf("b")}, {keyOf("b"), keyOf("a")}} {
		if err := os.WriteFile(filepath.Join(config.Storage.DataDir, "secret.key"), []byte(strings.Join(keys, ",")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		secrets, err := config.Secrets()
		if got := encoded(secrets); err != nil || !slices.Equal(got, keys) {
			t.Errorf("%v, %v, want %v", got, err, keys)
		}
	}
}

// One wrong value makes a list wrong, first or last.
func TestListWithOneWrongValueIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ good, wrong, separated string }{
		"PALIMPSEST_SECRET_KEY":           {keyOf("a"), base64.StdEncoding.EncodeToString([]byte("short")), ","},
		"PALIMPSEST_TRUSTED_PROXIES":      {"10.0.0.0/8", "10.1.2.3", ","},
		"PALIMPSEST_SIGNUP_DOMAINS":       {"a.example", "example", ","},
		"PALIMPSEST_SIGNUP_BLOCK_DOMAINS": {"a.example", "*.example", ","},
		"STRIPE_PRO_PRICE":                {"price_1", "", ","},
		"STRIPE_TEAM_PRICE":               {"price_1", " ", ","},
		"DATABASE_URLS":                   {"https://a.example=postgres://db1/a", "https://b.example=mysql://db1/b", " "},
		"PALIMPSEST_PIPE":                 {"ipc", "icp", ","},
	} {
		for _, list := range []string{c.good + c.separated + c.wrong, c.wrong + c.separated + c.good} {
			if _, err := LoadConfig("", environment(map[string]string{name: list})); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%q: %v", name, list, err)
			}
		}
	}
}

// keyOf returns the setting of a master key made of one letter.
func keyOf(letter string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

func encoded(secrets [][]byte) []string {
	texts := make([]string, len(secrets))
	for i, secret := range secrets {
		texts[i] = base64.StdEncoding.EncodeToString(secret)
	}
	return texts
}
