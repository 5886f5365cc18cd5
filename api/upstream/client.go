package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
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

// Request is what a provider is sent.
type Request struct {
	Method string
	Path   string // with its query
	Header http.Header
	Body   []byte

	// Done is called once nothing reads Body any more; nil: nobody waits for it.
	// It is not called if the provider did not take all of Body.
	Done func()

	// Stream is sent in place of Body if it is not nil: Length bytes, or as many as
	// come if Length is -1. A request with a stream is sent at most once.
	Stream io.Reader
	Length int64
}

// Send sends a request and returns the provider's answer, whose body the caller
// closes. It adds no retries and follows no redirects. The errors ErrForbiddenAddress, ErrUnreachable and
// the context's own tell why there is no answer; they hold no key and no query.
func (c *Client) Send(ctx context.Context, asked Request, target Target) (*http.Response, error) {
	base, err := base(target)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(withBegin(ctx), asked.Method, base+asked.Path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: path is not valid", ErrUnreachable)
	}
	request.Header = requestHeader(asked.Header)
	authorize(request.Header, target)
	content := newBody(asked.Body, asked.Done)
	switch {
	case asked.Stream != nil && asked.Length != 0:
		request.Body, request.ContentLength = io.NopCloser(asked.Stream), asked.Length
		if encoding := asked.Header.Get("Content-Encoding"); encoding != "" {
			request.Header.Set("Content-Encoding", encoding) // nobody has decoded it
		}
	case len(asked.Body) > 0:
		request.Body, request.ContentLength, request.GetBody = content, int64(len(asked.Body)), content.again
	}
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
	case err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http":
		return invalid("is not a URL such as https://api.example.com")
	case parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "":
		return invalid("must not hold a user, a query or a fragment")
	case allowPrivate:
		return nil
	case isPrivate(parsed):
		return invalid("leads to a private address, which this installation does not allow; who runs it can set PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS=true")
	case parsed.Scheme != "https":
		return invalid("must start with https://")
	default:
		return nil
	}
}

// isPrivate reports whether a base URL names this machine, or an address that the
// guard of connections refuses.
func isPrivate(base *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(base.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address := net.ParseIP(host)
	if address == nil {
		return false
	}
	port := cmp.Or(base.Port(), "443")
	network := "tcp6"
	if address.To4() != nil {
		network = "tcp4"
	}
	return ssrf.New(ssrf.WithAnyPort()).Safe(network, net.JoinHostPort(address.String(), port), nil) != nil
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
