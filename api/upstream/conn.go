package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
)

// conn is a connection on which a provider may answer before it has read the
// whole request, and close: what it no longer takes counts as written, so that
// the transport reads the answer in place of giving up on it. Reading tells
// whether there is one.
type conn struct {
	net.Conn

	begun atomic.Bool // something of the present request has been written
	gone  atomic.Bool // the provider takes no more
}

// Write implements io.Writer.
func (c *conn) Write(p []byte) (int, error) {
	begun := c.begun.Load()
	switch {
	case c.gone.Load() && begun:
		return len(p), nil
	case c.gone.Load():
		return 0, syscall.EPIPE // nothing of the request is lost: another connection will do
	}
	n, err := c.Conn.Write(p)
	switch {
	case err == nil:
		c.begun.Store(true)
		return n, nil
	case begun && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)):
		c.gone.Store(true)
		return len(p), nil
	default:
		return n, err //nolint:wrapcheck // the transport knows it by its type
	}
}

// dial returns a function that dials such connections.
func dial(dialer *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err //nolint:wrapcheck // the transport knows it by its type
		}
		return &conn{Conn: dialled}, nil
	}
}

// withBegin returns a context whose request tells its connection, and begins, that it
// begins. begins may be nil.
func withBegin(ctx context.Context, begins *atomic.Bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if begins != nil {
			begins.Store(true)
		}
		under := got.Conn
		if encrypted, is := under.(*tls.Conn); is {
			under = encrypted.NetConn()
		}
		if ours, is := under.(*conn); is {
			ours.begun.Store(false)
		}
	}})
}
