package connections

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"palimpsest/tenants"
)

// Limiter bounds the connections of each tenants.Place on which nobody has proven who they
// are. Behind trusted proxies, whose connections carry many people's requests, it bounds
// the requests of each place instead.
type Limiter struct {
	limit   int
	trusted []*net.IPNet
	address func(*http.Request) string

	mu   sync.Mutex
	open map[tenants.Place]int
}

// NewLimiter returns a Limiter with a limit, 0 for none. trusted are the networks of proxies,
// and address tells where a request comes from.
func NewLimiter(limit int, trusted []*net.IPNet, address func(*http.Request) string) *Limiter {
	return &Limiter{limit: limit, trusted: trusted, address: address, open: make(map[tenants.Place]int)}
}

// Listen returns a listener that closes connections beyond the limit of their place.
func (l *Limiter) Listen(listener net.Listener) net.Listener {
	return &bounded{Listener: listener, limiter: l}
}

// tooMany is the answer to a connection that is closed at once.
const tooMany = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 125\r\n\r\n" +
	`{"error":{"type":"rate_limit_error","message":"Too many connections are open from this network. Close some and try again."}}` + "\n"

// refusal bounds how long it takes to tell a client that it has too many connections.
const refusal = time.Second

type bounded struct {
	net.Listener

	limiter *Limiter
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // the server knows it by its type
		}
		place, counted := b.limiter.placeOf(conn.RemoteAddr())
		if !counted {
			return conn, nil
		}
		leave, entered := b.limiter.enter(place)
		if entered {
			return &stranger{Conn: conn, leave: leave}, nil
		}
		_ = conn.SetDeadline(time.Now().Add(refusal))
		_, _ = conn.Write([]byte(tooMany))
		_ = conn.Close()
	}
}

// placeOf returns the place of a connection; false for a trusted proxy's.
func (l *Limiter) placeOf(address net.Addr) (tenants.Place, bool) {
	from, is := address.(*net.TCPAddr)
	if !is || l.isTrusted(from.IP) {
		return tenants.Place{}, false
	}
	return tenants.PlaceOf(from.IP.String())
}

func (l *Limiter) isTrusted(address net.IP) bool {
	for _, network := range l.trusted {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// enter counts one more of a place until leave is called, any number of times.
func (l *Limiter) enter(place tenants.Place) (leave func(), entered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit > 0 && l.open[place] >= l.limit {
		return nil, false
	}
	l.open[place]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[place]--; l.open[place] == 0 {
			delete(l.open, place)
		}
	}), true
}

// stranger is a connection that counts until it is closed or its sender is known.
type stranger struct {
	net.Conn

	leave func()
}

// Close implements net.Conn.
func (s *stranger) Close() error {
	s.leave()
	return s.Conn.Close() //nolint:wrapcheck // the server knows it by its type
}

// leaveKey is where a context has what Admitted calls.
type leaveKey struct{}

// Context is an http.Server's ConnContext: it lets Admitted find the connection.
func Context(ctx context.Context, conn net.Conn) context.Context {
	if counted, is := conn.(*stranger); is {
		return context.WithValue(ctx, leaveKey{}, counted.leave)
	}
	return ctx
}

// Admitted says that the sender of a request has proven who they are: their connection
// counts no longer.
func Admitted(ctx context.Context) {
	if leave, is := ctx.Value(leaveKey{}).(func()); is {
		leave()
	}
}

// BoundRequests bounds the requests that come through trusted proxies, by the place that
// these name.
func (l *Limiter) BoundRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		peer, _, err := net.SplitHostPort(request.RemoteAddr)
		place, known := tenants.PlaceOf(l.address(request))
		if err != nil || !known || !l.isTrusted(net.ParseIP(peer)) {
			next.ServeHTTP(w, request)
			return
		}
		leave, entered := l.enter(place)
		if !entered {
			w.Header().Set("Retry-After", "5")
			w.Header().Set("Connection", "close")
			http.Error(w, "Too many requests are open from this network. Wait for some to end and try again.", http.StatusTooManyRequests)
			return
		}
		defer leave()
		next.ServeHTTP(w, request.WithContext(context.WithValue(request.Context(), leaveKey{}, leave)))
	})
}
