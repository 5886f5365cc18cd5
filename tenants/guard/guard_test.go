package guard_test

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"palimpsest/tenants/guard"
)

// ofMachine returns an address of this machine that is not loopback, or skips the rest.
func ofMachine(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, err := netip.ParsePrefix(address.String()); err == nil && !network.Addr().IsLoopback() && !network.Addr().IsLinkLocalUnicast() {
			return network.Addr().String()
		}
	}
	return "127.0.0.1"
}

// S51: what a workspace says never leads to the program's own listeners, under any address of
// the machine, nor to link-local addresses and those of clouds' credentials. Other ports and
// machines are reached where private addresses are allowed.
func TestOwnListenersAndLinkLocalAddressesAreNeverDialed(t *testing.T) {
	t.Parallel()
	own := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9090}
	open, closed := guard.New(true), guard.New(false)
	for _, one := range []*guard.Guard{open, closed} {
		one.Own(&net.TCPAddr{IP: net.IPv6unspecified, Port: 8080})
		one.Own(own)
	}
	for _, host := range []string{"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "0.0.0.0", "0.1.2.3", "::", ofMachine(t)} {
		for port, refused := range map[int]bool{9090: true, 8080: true, 9091: false} {
			address := net.JoinHostPort(host, strconv.Itoa(port))
			if err := open.Control("tcp", address, nil); errors.Is(err, guard.ErrForbidden) != refused {
				t.Errorf("%s: %v, want refused %v", address, err, refused)
			}
		}
	}
	for _, host := range []string{"169.254.169.254", "169.254.1.1", "fe80::1", "fe80::1%eth0", "febf::1", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16", "ff02::1"} {
		for name, check := range map[string]*guard.Guard{"open": open, "closed": closed} {
			if err := check.Control("tcp", net.JoinHostPort(host, "80"), nil); !errors.Is(err, guard.ErrForbidden) {
				t.Errorf("%s, %s: %v", host, name, err)
			}
		}
	}
	for address, isPrivate := range map[string]bool{"8.8.8.8:443": false, "[2606:4700::1111]:443": false, "10.0.0.5:9090": true, "192.168.1.1:80": true, "127.0.0.1:11434": true, "[fd12::1]:80": true} {
		if err := open.Control("tcp", address, nil); err != nil {
			t.Errorf("%s, open: %v", address, err)
		}
		network := "tcp4"
		if address[0] == '[' {
			network = "tcp6"
		}
		if err := closed.Control(network, address, nil); errors.Is(err, guard.ErrForbidden) != isPrivate {
			t.Errorf("%s, closed: %v", address, err)
		}
		if err := open.Public(network, address, nil); errors.Is(err, guard.ErrForbidden) != isPrivate {
			t.Errorf("%s, public only: %v", address, err)
		}
		if host := netip.MustParseAddrPort(address).Addr(); guard.IsPrivate(host) != isPrivate || guard.IsNever(host) {
			t.Errorf("%s: private %v, never %v", address, guard.IsPrivate(host), guard.IsNever(host))
		}
	}
}
