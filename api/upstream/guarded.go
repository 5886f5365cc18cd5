package upstream

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"palimpsest/tenants/guard"
)

// NewGuardedClient returns a client for addresses that a workspace has typed and that are no
// provider's, which connects where by lets it. It follows no redirects and keeps no
// connections; timeout is for the whole request with its answer.
func NewGuardedClient(by *guard.Guard, timeout time.Duration) *http.Client {
	transport := newTransport(newDialer(by.Control))
	transport.DisableKeepAlives = true
	return &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// IsForbidden reports whether a request failed because a guarded client refuses its address.
func IsForbidden(err error) bool {
	return errors.Is(err, guard.ErrForbidden)
}

// IsPrivate reports whether a URL names this machine, or an address that a guarded client
// refuses. Where a name leads is not looked up.
func IsPrivate(address *url.URL) bool { return isPrivate(address) }
