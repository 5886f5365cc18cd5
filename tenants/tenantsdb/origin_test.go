package tenantsdb_test

import (
	"testing"

	"palimpsest/tenants"
)

// W54: preflights see the origins of workspaces and keys as they are now, and nothing else of them.
func TestOriginsThatAnyoneAllowsAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := func(origin string, allowed bool) {
		t.Helper()
		if got, err := b.APIKeys.OriginAllowed(t.Context(), origin); err != nil || got != allowed {
			t.Errorf("%s: %v, %v", origin, got, err)
		}
	}
	key, _ := b.addKey(t, b.workspace)
	want("https://a.example", false)
	settings := tenants.DataSettings{TimeZone: "UTC", Text: textPolicy(), Origins: tenants.Origins{"https://a.example", "app://b"}}
	if err := b.Data.SetDataSettings(t.Context(), b.workspace, settings); err != nil {
		t.Fatal(err)
	}
	key.Limits.Origins = tenants.Origins{"https://c.example"}
	if err := b.APIKeys.ChangeAPIKey(t.Context(), b.workspace, key); err != nil {
		t.Fatal(err)
	}
	want("https://a.example", true)
	want("app://b", true)
	want("https://c.example", true)
	want("https://d.example", false)
	want("", false)
	settings.Origins = nil
	if err := b.Data.SetDataSettings(t.Context(), b.workspace, settings); err != nil {
		t.Fatal(err)
	}
	want("https://a.example", false)
	want("https://c.example", true)
	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	want("https://c.example", false)
}
