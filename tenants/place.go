package tenants

import "net/netip"

const (
	bitsIPv4 = 32
	bitsIPv6 = 64 // one customer has a whole /64 network
)

// Place is the origin of requests: an IPv4 address, or the /64 network of an IPv6 address. Limits by origin
// count by place.
type Place struct{ network netip.Prefix }

// PlaceOf returns the place of an address, and false if it is not an IP address.
func PlaceOf(address string) (Place, bool) {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return Place{}, false
	}
	parsed = parsed.Unmap().WithZone("")
	bits := bitsIPv4
	if parsed.Is6() {
		bits = bitsIPv6
	}
	network, err := parsed.Prefix(bits)
	return Place{network: network}, err == nil
}

// String returns the network of a place, such as 192.0.2.1/32 or 2001:db8::/64.
func (p Place) String() string { return p.network.String() }

// Place returns the place of an actor as text; "" for the product and its command line.
func (a Actor) Place() string { return PlaceText(a.From) }

// PlaceText returns the place of an address as text, and returns other text unchanged.
func PlaceText(address string) string {
	if place, is := PlaceOf(address); is {
		return place.String()
	}
	return address
}
