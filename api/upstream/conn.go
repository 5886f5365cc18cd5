package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"palimpsest/tenants/guard"
)

// conn is a connection whose provider may answer and close before it has read the whole request. Bytes that
// the provider no longer takes count as written, so that the transport reads the answer instead of failing.
// Reading tells whether there is one.
//
// Between requests of HTTP/1, conn closes before the provider does, because a request that is sent while the
// provider closes is lost.
type conn struct {
	net.Conn

	begun atomic.Bool // some of the current request has been written
	gone  atomic.Bool // the provider accepts no more bytes
	reset atomic.Bool // it has reset the connection while a request was written

	mu      sync.Mutex
	uses    int    // requests on it so far
	idle    bool   // it waits for the next one
	expired bool   // its idle time is over
	ended   int    // number of the use in which reading ended; 0 before
	closed  bool   // the provider has ended it, without a reset
	taken   uint64 // bytes that the provider's system had acknowledged when the current request began
	atEnd   uint64 // and when reading ended
}

// Read implements io.Reader.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err == nil || n > 0 {
			return n, err //nolint:wrapcheck // the transport knows it by its type
		}
		if c.ends(err) {
			return 0, err //nolint:wrapcheck // the transport knows it by its type
		}
	}
}

// ends notes that reading has ended. It returns false for a deadline that the next request has already
// lifted.
func (c *conn) ends(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.expired = c.idle
		return c.idle
	}
	if c.ended == 0 {
		c.ended, c.closed, c.atEnd = c.uses, errors.Is(err, io.EOF) && !c.reset.Load(), acknowledged(c.Conn)
	}
	return true
}

// Write implements io.Writer.
func (c *conn) Write(p []byte) (int, error) {
	begun := c.begun.Load()
	switch {
	case c.gone.Load() && begun:
		return len(p), nil
	case c.gone.Load():
		return 0, syscall.EPIPE // the request is intact, so another connection can send it
	}
	n, err := c.Conn.Write(p)
	switch {
	case err == nil:
		c.begun.Store(true)
		return n, nil
	case begun && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)):
		c.reset.Store(errors.Is(err, syscall.ECONNRESET))
		c.gone.Store(true)
		return len(p), nil
	default:
		return n, err //nolint:wrapcheck // the transport knows it by its type
	}
}

// begin gives the connection to a request and returns the number of this use.
func (c *conn) begin() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	c.idle, c.taken = false, acknowledged(c.Conn)
	if c.expired {
		c.gone.Store(true)
	}
	_ = c.SetReadDeadline(time.Time{})
	c.begun.Store(false)
	return c.uses
}

// rest lets the connection close unless it is used again soon. It does nothing if another request uses it
// already.
func (c *conn) rest(use int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uses == use {
		c.idle = true
		_ = c.SetReadDeadline(time.Now().Add(idlePlain))
	}
}

// isUnread reports whether the connection ended before any byte of a use's request arrived: before the use
// began, or with no byte acknowledged by the provider's system since then. A reset in a use proves nothing: a
// provider that closes with bytes unread resets the connection, and a reset acknowledges nothing.
func (c *conn) isUnread(use int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uses == use && c.ended > 0 && (c.ended < use || use > 1 && c.closed && c.taken > 0 && c.taken == c.atEnd)
}

// dial returns a function that dials conns.
func dial(dialer *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err //nolint:wrapcheck // the transport knows it by its type
		}
		return &conn{Conn: dialled}, nil
	}
}

// attempt is one try to send a request.
type attempt struct {
	begins *atomic.Bool // optional

	mu   sync.Mutex
	conn *conn // of HTTP/1; nil without one
	use  int
}

// in returns a context that reports the request's connection and its start, to begins.
func (a *attempt) in(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: a.got, PutIdleConn: func(err error) {
		if conn, use := a.at(); conn != nil && err == nil {
			conn.rest(use)
		}
	}})
}

func (a *attempt) got(got httptrace.GotConnInfo) {
	if a.begins != nil {
		a.begins.Store(true)
	}
	under, isPlain := got.Conn, true
	if encrypted, is := under.(*tls.Conn); is {
		under, isPlain = encrypted.NetConn(), encrypted.ConnectionState().NegotiatedProtocol != "h2"
	}
	ours, is := under.(*conn)
	switch {
	case is && isPlain:
		use := ours.begin()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.conn, a.use = ours, use
	case is:
		ours.begun.Store(false)
	}
}

func (a *attempt) at() (*conn, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conn, a.use
}

// isUnread reports whether the request didn't reach the provider, though it was written.
func (a *attempt) isUnread() bool {
	conn, use := a.at()
	return conn != nil && conn.isUnread(use)
}

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
