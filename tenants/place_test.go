package tenants_test

import (
	"testing"

	"palimpsest/tenants"
)

// S11: an IPv6 customer has a /64, so its addresses are one place.
func TestPlaceIsAnIPv4AddressOrAnIPv6Network(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1":            "192.0.2.1/32",
		"::ffff:192.0.2.1":     "192.0.2.1/32",
		"2001:db8:1:2::1":      "2001:db8:1:2::/64",
		"2001:db8:1:2:a:b:c:d": "2001:db8:1:2::/64",
		"2001:db8:1:3::1":      "2001:db8:1:3::/64",
		"fe80::1%eth0":         "fe80::/64",
		"":                     "",
		"not an address":       "not an address",
	} {
		if got := (tenants.Actor{From: address}).Place(); got != want {
			t.Errorf("place of %q: %q, want %q", address, got, want)
		}
	}
}
