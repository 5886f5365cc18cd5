package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"palimpsest/tenants"
)

// The kinds of failure before a provider has answered.
var (
	ErrForbiddenAddress = errors.New("provider's address is not allowed")
	ErrUnreachable      = errors.New("provider cannot be reached")
)

const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 10 * time.Minute // models may think this long before the first byte
	idleTimeout   = 90 * time.Second
	keepAlive     = 30 * time.Second
	idlePerHost   = 512
)

// Target is a provider as one request reaches it.
type Target struct {
	Provider tenants.Provider
	BaseURL  string // empty: the provider's own
	Key      string // in the clear
}

// Client sends requests to providers.
type Client struct {
	guarded *http.Transport // refuses private addresses
	open    *http.Transport
	private bool
}

// New returns a client. Unless allowPrivate is set, base URLs that lead to
// loopback, private and other special addresses are refused when the connection
// is made, whatever name they hide behind. The providers' own are not looked at.
func New(allowPrivate bool) *Client {
	guard := ssrf.New(ssrf.WithAnyPort())
	return &Client{guarded: newTransport(newDialer(guard.Safe)), open: newTransport(newDialer(nil)), private: allowPrivate}
}

// Send sends a request and returns the provider's answer, whose body the caller
// closes. It adds no retries and follows no redirects. The errors ErrForbiddenAddress, ErrUnreachable and
// the context's own tell why there is no answer; they hold no key and no query.
func (c *Client) Send(ctx context.Context, method, path string, header http.Header, body []byte, target Target) (*http.Response, error) {
	base, err := base(target)
	if err != nil {
		return nil, err
	}
	content := newBody(body)
	request, err := http.NewRequestWithContext(withBegin(ctx), method, base+path, content)
	if err != nil {
		return nil, fmt.Errorf("%w: path is not valid", ErrUnreachable)
	}
	request.ContentLength = int64(len(body))
	if len(body) == 0 {
		request.Body = http.NoBody
	}
	request.GetBody = content.again
	request.Header = requestHeader(header)
	authorize(request.Header, target)
	transport := c.guarded
	if c.private || target.BaseURL == "" {
		transport = c.open
	}
	response, err := transport.RoundTrip(request)
	content.done()
	if err != nil {
		return nil, failure(ctx, err)
	}
	response.Request = nil // it holds the body while the answer streams
	return response, nil
}

// Close closes idle connections.
func (c *Client) Close() {
	c.guarded.CloseIdleConnections()
	c.open.CloseIdleConnections()
}

// VerifyBaseURL refuses a base URL that no request could go to. Where names lead
// is decided anew at each connection. The error is a tenants.Invalid.
func VerifyBaseURL(raw string, allowPrivate bool) error {
	invalid := func(message string) error { return tenants.Invalid{Field: "base_url", Message: message} }
	parsed, err := url.Parse(raw)
	switch {
	case err != nil || parsed.Host == "":
		return invalid("is not a URL such as https://api.example.com")
	case parsed.Scheme != "https" && (parsed.Scheme != "http" || !allowPrivate):
		return invalid("must start with https://")
	case parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "":
		return invalid("must not hold a user, a query or a fragment")
	case allowPrivate:
		return nil
	}
	address := net.ParseIP(parsed.Hostname())
	if address == nil {
		return nil
	}
	port := parsed.Port()
	if port == "" {
		port = "443"
	}
	network := "tcp6"
	if address.To4() != nil {
		network = "tcp4"
	}
	if ssrf.New(ssrf.WithAnyPort()).Safe(network, net.JoinHostPort(address.String(), port), nil) != nil {
		return invalid("leads to a private address, which this installation does not allow")
	}
	return nil
}

// base returns where a target's paths begin: without a trailing slash and
// without the "/v1" that every path brings along.
func base(target Target) (string, error) {
	if target.BaseURL != "" {
		return strings.TrimSuffix(strings.TrimRight(target.BaseURL, "/"), "/v1"), nil
	}
	switch target.Provider {
	case tenants.ProviderAnthropic:
		return "https://api.anthropic.com", nil
	case tenants.ProviderOpenAI:
		return "https://api.openai.com", nil
	default:
		return "", fmt.Errorf("%w: provider %q has no base URL", ErrUnreachable, target.Provider)
	}
}

// failure tells what kept a request from being answered, without its URL.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) || errors.Is(err, ssrf.ErrProhibitedPort) {
		return ErrForbiddenAddress
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// newDialer returns a dialer that asks control about each address, once its name
// has been looked up, before it connects.
func newDialer(control func(network, address string, conn syscall.RawConn) error) *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: control}
}

func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		Proxy:                 nil, // the environment's proxy would defeat the guard
		DialContext:           dial(dialer),
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: keepAlive, PingTimeout: dialTimeout}, // finds dead connections
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   idlePerHost,
		DisableCompression:    true, // taps read plain bytes, clients get what the provider sent
	}
}
