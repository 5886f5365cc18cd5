package tenants_test

import (
	"errors"
	"testing"

	"palimpsest/tenants"
)

func TestOriginsAreWholeOrigins(t *testing.T) {
	t.Parallel()
	for origin, good := range map[string]bool{
		"https://chat.example.com": true, "http://localhost:5173": true, "app://obsidian.md": true, "chrome-extension://abcdefgh": true, "HTTPS://Chat.Example.com": true,
		"http://[::1]:3000": true,
		"*":                 false, "null": false, "https://*": false, "https://*.example.com": false, "https://chat.example.com/": false, "https://chat.example.com/a": false,
		"chat.example.com": false, "https://": false, "https://a:b@example.com": false, "https://example.com?x": false, "https://example.com#x": false, "https://example.com:": false,
		"https://exa mple.com": false, "https://example.com\n": false,
	} {
		err := tenants.Limits{Origins: tenants.Origins{origin}}.Validate()
		invalid, is := errors.AsType[tenants.Invalid](err)
		if good && err != nil || !good && (!is || invalid.Field != "browser_origins") {
			t.Errorf("%q: %v", origin, err)
		}
	}
	settings := tenants.DataSettings{TimeZone: "UTC", Origins: tenants.Origins{" HTTPS://A.example ", "https://a.example", ""}}.Normal()
	if len(settings.Origins) != 1 || !settings.Origins.Allow("https://A.example") || settings.Origins.Allow("https://b.example") || (tenants.Origins{}).Allow("") {
		t.Errorf("%v", settings.Origins)
	}
}
