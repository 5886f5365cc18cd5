package components_test

import (
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

func TestUnkeptNamesTheKeysThatKeepNothing(t *testing.T) {
	t.Parallel()
	keeping := tenants.APIKey{Name: "laptop"}
	key := func(name string) tenants.APIKey {
		return tenants.APIKey{Name: name, Limits: tenants.Limits{NoStore: true}}
	}
	revoked := key("old")
	revoked.RevokedAt = new(time.Now())
	for _, test := range []struct {
		settings tenants.DataSettings
		keys     []tenants.APIKey
		want     string
	}{
		{keys: []tenants.APIKey{keeping, revoked}, want: ""},
		{keys: []tenants.APIKey{keeping, key("ci")}, want: "The key ci keeps figures only: its conversations are not archived or compressed, and its requests create no session."},
		{
			keys: []tenants.APIKey{key("ci"), revoked, key("evals"), key("nightly")},
			want: "The keys ci, evals and nightly keep figures only: their conversations are not archived or compressed, and their requests create no session.",
		},
		{
			settings: tenants.DataSettings{NoStore: true}, keys: []tenants.APIKey{key("ci")},
			want: "This workspace keeps figures only: conversations are not archived or compressed, and requests create no session.",
		},
	} {
		if got := components.Unkept(test.settings, test.keys); got != test.want {
			t.Errorf("%+v: %q, want %q", test.keys, got, test.want)
		}
	}
}
