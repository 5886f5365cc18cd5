package upstream

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"code.dny.dev/ssrf"
)

// NewGuardedClient returns a client for addresses that a workspace has typed and that are no
// provider's. Unless allowPrivate is set, it refuses loopback, private and other special
// addresses when the connection is made. It follows no redirects and keeps no connections;
// timeout is for the whole request with its answer.
func NewGuardedClient(allowPrivate bool, timeout time.Duration) *http.Client {
	dialer := newDialer(ssrf.New(ssrf.WithAnyPort()).Safe)
	if allowPrivate {
		dialer = newDialer(nil)
	}
	transport := newTransport(dialer)
	transport.DisableKeepAlives = true
	return &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// IsForbidden reports whether a request failed because a guarded client refuses its address.
func IsForbidden(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) || errors.Is(err, ssrf.ErrProhibitedPort)
}

// IsPrivate reports whether a URL names this machine, or an address that a guarded client
// refuses. Where a name leads is not looked up.
func IsPrivate(address *url.URL) bool { return isPrivate(address) }
