// Package guard decides which addresses the program may connect to on behalf of workspaces: base URLs of
// providers, webhooks, identity providers. It checks the address at connection time, so that names, redirects
// and spellings cannot bypass it.
package guard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrForbidden says that an address may not be connected to.
var ErrForbidden = errors.New("address is not allowed")

// Guard decides which addresses may be dialed. Its methods Control, Public and Never are for
// net.Dialer.Control; they return an error with ErrForbidden for a refused address.
type Guard struct {
	private bool
	public  *ssrf.Guardian

	mu  sync.RWMutex
	own []uint16 // ports that the process listens on
}

// New returns a Guard. Unless allowPrivate is set, loopback, private and other special
// addresses are refused.
func New(allowPrivate bool) *Guard {
	return &Guard{private: allowPrivate, public: ssrf.New(ssrf.WithAnyPort())}
}

// AllowsPrivate reports whether private addresses are allowed.
func (g *Guard) AllowsPrivate() bool { return g.private }

// Own makes the Guard refuse the address of one of the process's listeners, under every address of this
// machine.
func (g *Guard) Own(listener net.Addr) {
	tcp, is := listener.(*net.TCPAddr)
	if !is {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = append(g.own, tcp.AddrPort().Port())
}

// Control refuses the addresses of Never, and private ones unless they are allowed.
func (g *Guard) Control(network, address string, conn syscall.RawConn) error {
	if g.private {
		return g.Never(network, address, conn)
	}
	return g.Public(network, address, conn)
}

// Public refuses the addresses of Never, and always private ones.
func (g *Guard) Public(network, address string, conn syscall.RawConn) error {
	if err := g.public.Safe(network, address, conn); err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return g.Never(network, address, conn)
}

// Never refuses addresses that no workspace setting may reach: the listeners of this process, link-local
// addresses, and the metadata addresses from which clouds give machines their credentials.
func (g *Guard) Never(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	host := plain(to.Addr())
	if IsNever(host) {
		return fmt.Errorf("%w: %s is link-local or gives credentials away", ErrForbidden, host)
	}
	g.mu.RLock()
	isOwn := slices.Contains(g.own, to.Port())
	g.mu.RUnlock()
	if isOwn && isThisMachine(host) {
		return fmt.Errorf("%w: %s is an address of this program", ErrForbidden, to)
	}
	return nil
}

// isThisMachine reports whether an address is one of this machine's.
func isThisMachine(host netip.Addr) bool {
	if host.IsLoopback() || host.IsUnspecified() || host.Is4() && host.As4()[0] == 0 {
		return true
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return true // unknown
	}
	return slices.ContainsFunc(addresses, func(address net.Addr) bool {
		network, err := netip.ParsePrefix(address.String())
		return err == nil && plain(network.Addr()) == host
	})
}

// IsNever reports whether an address is link-local, or a metadata address from which clouds give machines
// their credentials: AWS by IPv6, Alibaba, Oracle, Azure.
func IsNever(host netip.Addr) bool {
	host = plain(host)
	return host.IsLinkLocalUnicast() || host.IsLinkLocalMulticast() || slices.Contains([]netip.Addr{
		netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
	}, host)
}

// translated is the prefix of IPv6 addresses that represent IPv4 ones (RFC 6052).
const translated = "64:ff9b::/96"

// plain returns an address without its zone, and IPv4 addresses in one form.
func plain(host netip.Addr) netip.Addr {
	host = host.WithZone("").Unmap()
	if netip.MustParsePrefix(translated).Contains(host) {
		bytes := host.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return host
}

// IsPrivate reports whether an address is refused unless private ones are allowed.
func IsPrivate(host netip.Addr) bool {
	network := "tcp6"
	if host = host.Unmap(); host.Is4() {
		network = "tcp4"
	}
	return New(false).Public(network, netip.AddrPortFrom(host, 443).String(), nil) != nil
}
