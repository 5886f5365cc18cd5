package upstream

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"palimpsest/tenants/guard"
)

// NewGuardedClient returns a client for addresses of a workspace other than providers. It only connects to
// hosts that by allows. It follows no redirects and keeps no connections; timeout is for the whole request
// with its answer.
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

// IsPrivate reports whether a URL names this machine, or an address that a guarded client refuses. It doesn't
// look names up.
func IsPrivate(address *url.URL) bool { return isPrivate(address) }
