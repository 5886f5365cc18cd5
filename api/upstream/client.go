package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"palimpsest/pipeline/spans"
	"palimpsest/tenants/guard"
)

// The kinds of failure before a provider has answered.
var (
	ErrForbiddenAddress = errors.New("provider's address is not allowed")
	ErrUnreachable      = errors.New("provider cannot be reached")

	// ErrUnanswered says that a connection ended, and ErrLate that the target's Wait was over, before the
	// provider answered. The provider may still work on the request, and charge for it.
	ErrUnanswered = errors.New("connection to the provider ended without an answer")
	ErrLate       = fmt.Errorf("provider did not begin to answer: %w", os.ErrDeadlineExceeded)
)

const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
	idlePerHost = 512

	// idleTimeout and idlePlain are how long idle connections are kept: of HTTP/2, whose servers announce
	// that they close, and of HTTP/1, whose servers don't. Node.js and uvicorn close after 5 s.
	idleTimeout = 55 * time.Second
	idlePlain   = 4 * time.Second

	// mostUnread bounds the retries of a request that the provider has not read.
	mostUnread = 3
)

// Client sends requests to providers.
type Client struct {
	guarded *http.Transport // refuses private addresses
	open    *http.Transport // refuses addresses that are never allowed
	private bool
	tokens  *tokens
}

// New returns a client with a guard of its own, see NewGuarded.
func New(allowPrivate bool) *Client { return NewGuarded(guard.New(allowPrivate)) }

// NewGuarded returns a client that only connects to addresses that by allows. It checks each address at
// connection time, because a name may hide it. The providers' own base URLs may lead to private addresses.
func NewGuarded(by *guard.Guard) *Client {
	c := &Client{guarded: newTransport(newDialer(by.Public)), open: newTransport(newDialer(by.Never)), private: by.AllowsPrivate()}
	c.tokens = newTokens(c.guarded)
	if c.private {
		c.tokens = newTokens(c.open)
	}
	return c
}

// SignInAt sets the address of Microsoft Entra ID. By default it is the one of the cloud that a base URL belongs to.
func (c *Client) SignInAt(entra string) *Client {
	c.tokens.entra = entra
	return c
}

// Request is a request to a provider.
type Request struct {
	Method string
	Path   string // with its query
	Header http.Header
	Body   []byte

	// Done is optional. It is called when nothing reads Body any more, unless the provider did not take all
	// of Body.
	Done func()

	Resends int // earlier attempts

	// Begun is optional. It is set before the first byte of the request is written: without an answer, the
	// provider may still work on it.
	Begun *atomic.Bool

	// Stream is sent in place of Body if it is not nil: Length bytes, or all of it if Length is -1. A request
	// with a stream is sent at most once.
	Stream io.Reader
	Length int64
}

// Send sends a request and returns the provider's answer, whose body the caller closes. It follows no
// redirects, and only retries requests of which no byte was read. The errors ErrMethod, ErrPath,
// ErrForbiddenAddress, ErrUnreachable, ErrUnanswered, ErrLate, ErrSignIn and the context's own say why there is no
// answer; they hold no key and no query.
func (c *Client) Send(ctx context.Context, asked Request, target Target) (response *http.Response, err error) {
	ctx, span := spans.StartCall(ctx, asked.Method)
	defer func() { note(span, asked, response, err) }()
	asked, target, restore, err := onPlatform(asked, target)
	if err != nil {
		return nil, err
	}
	address, err := addressOf(asked, target)
	if err != nil {
		return nil, err
	}
	secrets, own := secretsOf(target), target
	if target, err = c.tokens.signedIn(ctx, target); err != nil {
		return nil, err
	}
	if needsToken(own) {
		secrets = append(secrets, secretsOf(target)...)
	}
	waiting, answered := within(ctx, target.Wait)
	for try := range mostUnread {
		attempt := attempt{begins: asked.Begun}
		response, err = c.try(attempt.in(waiting), span, asked, target, address)
		isOver := err == nil || waiting.Err() != nil
		if !isOver && attempt.isUnread() {
			begins(asked.Begun, false)
			isOver = asked.Stream != nil || try == mostUnread-1
			if !isOver {
				continue
			}
		}
		break
	}
	answered()
	if err != nil {
		return nil, failure(waiting, asked.Begun, err)
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w: it changes the protocol, which it was not asked for", ErrUnreachable)
	}
	if needsToken(own) && (response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden && assumesRole(own)) {
		c.tokens.forget(own)
	}
	response.Request = nil // it holds the body while the answer streams
	if err := restore(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	for _, secret := range secrets {
		Mask(response, secret)
	}
	return response, nil
}

// within returns a context that ends with ErrLate after wait, unless answered has been called before; 0
// means no limit.
func within(ctx context.Context, wait time.Duration) (waiting context.Context, answered func()) {
	if wait <= 0 {
		return ctx, func() {}
	}
	waiting, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(wait, func() { cancel(ErrLate) })
	return waiting, func() { late.Stop() }
}

// begins notes whether a request may have reached the provider.
func begins(begun *atomic.Bool, has bool) {
	if begun != nil {
		begun.Store(has)
	}
}

// try sends a request once.
func (c *Client) try(ctx context.Context, span spans.Span, asked Request, target Target, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, asked.Method, address, http.NoBody)
	if err != nil {
		return nil, errAddress
	}
	request.Header = requestHeader(asked.Header, target)
	spans.Carry(ctx, request.Header)
	span.String(spans.ServerAddress, request.URL.Hostname())
	if err := sign(ctx, request, asked.Body, target, time.Now()); err != nil {
		return nil, err
	}
	content := newBody(asked.Body, asked.Done)
	switch {
	case asked.Stream != nil && asked.Length != 0:
		request.Body, request.ContentLength = io.NopCloser(asked.Stream), asked.Length
		if encodings := asked.Header.Values("Content-Encoding"); len(encodings) > 0 {
			request.Header["Content-Encoding"] = encodings // still encoded
		}
	case len(asked.Body) > 0:
		request.Body, request.ContentLength, request.GetBody = content, int64(len(asked.Body)), content.again
	}
	transport := c.guarded
	if c.private && !target.PublicOnly || target.BaseURL == "" {
		transport = c.open
	}
	response, err := transport.RoundTrip(request)
	if err == nil {
		content.done()
	}
	return response, err //nolint:wrapcheck // Send tells what it means
}

// errAddress is the error for an address without a valid URL.
var errAddress = errors.New("path is not valid")

// note ends a request's span with its result.
func note(span spans.Span, asked Request, response *http.Response, err error) {
	span.String(spans.Method, asked.Method)
	if asked.Resends > 0 {
		span.Int(spans.Resends, asked.Resends)
	}
	if response != nil {
		span.Int(spans.Status, response.StatusCode)
		if response.StatusCode >= http.StatusBadRequest {
			span.Fail(strconv.Itoa(response.StatusCode))
		}
	}
	span.EndWith(&err)
}

// addressOf returns the URL of a request to a target, after checking it.
func addressOf(asked Request, target Target) (string, error) {
	if err := CheckMethod(asked.Method); err != nil {
		return "", err
	}
	path, _, _ := strings.Cut(asked.Path, "?")
	if err := CheckPath(path); err != nil {
		return "", err
	}
	return address(target, withoutKeys(asked.Path))
}

// Close closes idle connections.
func (c *Client) Close() {
	c.guarded.CloseIdleConnections()
	c.open.CloseIdleConnections()
}

// failure returns the reason why a request was not answered, without its URL.
func failure(ctx context.Context, begun *atomic.Bool, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case IsForbidden(err):
		return ErrForbiddenAddress
	case begun != nil && begun.Load():
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// newDialer returns a dialer that checks each resolved address with control before it connects.
func newDialer(control func(network, address string, conn syscall.RawConn) error) *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: control}
}

func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		Proxy:               nil, // the environment's proxy would defeat the guard
		DialContext:         dial(dialer),
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: keepAlive, PingTimeout: dialTimeout}, // finds dead connections
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleTimeout,
		MaxIdleConns:        idlePerHost, // many hosts keep no more than one
		MaxIdleConnsPerHost: idlePerHost,
		DisableCompression:  true, // taps read plain bytes, and clients get the provider's bytes
	}
}
