package main

import (
	"net/http"
	"net/http/httptest"
	"palimpsest/cmd/palimpsest/settings"
	"testing"
)

// Anybody can write X-Forwarded-For: only what trusted proxies add to it counts.
func TestForwardedAddressIsBelievedFromTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ trusted, from, forwarded, want string }{
		"no proxy is trusted":         {"", "127.0.0.1:1234", "203.0.113.7", "127.0.0.1"},
		"an untrusted neighbor":       {"10.0.0.0/8", "192.168.1.1:1234", "203.0.113.7", "192.168.1.1"},
		"a trusted proxy":             {"10.0.0.0/8", "10.1.2.3:1234", "203.0.113.7", "203.0.113.7"},
		"a client that writes itself": {"10.0.0.0/8", "10.1.2.3:1234", "198.51.100.1, 203.0.113.7", "203.0.113.7"},
		"two trusted proxies":         {"10.0.0.0/8, 172.16.0.1/32", "10.1.2.3:1234", "203.0.113.7, 172.16.0.1", "203.0.113.7"},
		"no header":                   {"10.0.0.0/8", "10.1.2.3:1234", "", "10.1.2.3"},
		"nonsense":                    {"10.0.0.0/8", "10.1.2.3:1234", "203.0.113.7, nonsense", "10.1.2.3"},
	} {
		config := settings.Config{Serving: settings.Serving{TrustedProxies: test.trusted}}
		request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		request.RemoteAddr = test.from
		if test.forwarded != "" {
			request.Header.Set("X-Forwarded-For", test.forwarded)
		}
		if got := clientAddress(config.Serving)(request); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
