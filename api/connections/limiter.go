package connections

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/tenants"
)

// Limits bound the open connections. 0 means no limit.
type Limits struct {
	PerPlace    int // unauthenticated, of a tenants.Place
	PerKey      int // of an API key or a login
	PerAccount  int // of the account that owns a workspace, or of the person who is logged in
	Descriptors int // file descriptors of connections and of their requests to a provider
}

// Limiter bounds the connections of each place, key and account. Behind trusted proxies, whose
// connections carry many people's requests, it bounds the requests of each instead.
type Limiter struct {
	limits  Limits
	trusted []*net.IPNet
	address func(*http.Request) string
	refused *prometheus.CounterVec // connections and requests, by the exceeded limit

	mu      sync.Mutex
	open    map[*entry]struct{} // connections
	taken   int                 // descriptors: a connection takes one, a request on it another
	holders map[any]*holder     // by tenants.Place, keyID and accountID
	turn    uint64              // counts the connections that became idle
}

// NewLimiter returns a Limiter. trusted are the networks of proxies, and address returns the client's address
// of a request.
func NewLimiter(limits Limits, trusted []*net.IPNet, address func(*http.Request) string) *Limiter {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "palimpsest_connections_refused_total", Help: "Connections, and requests on them, that were refused because too many are open.",
	}, []string{"limit"})
	for of := OfPlace; of <= OfAll; of++ {
		refused.WithLabelValues(of.String()) // so that a rate starts at zero
	}
	return &Limiter{limits: limits, trusted: trusted, address: address, refused: refused, open: make(map[*entry]struct{}), holders: make(map[any]*holder)}
}

// Metrics returns the counter of refusals.
func (l *Limiter) Metrics() prometheus.Collector { return l.refused }

// Listen returns a listener that closes connections beyond the limits.
func (l *Limiter) Listen(listener net.Listener) net.Listener {
	return &bounded{Listener: listener, limiter: l}
}

type bounded struct {
	net.Listener

	limiter *Limiter
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && b.limiter.shed() {
			continue
		}
		if err != nil {
			return nil, err //nolint:wrapcheck // the server knows it by its type
		}
		connection := &entry{limiter: b.limiter, conn: conn}
		if place, counted := b.limiter.placeOf(conn.RemoteAddr()); counted {
			connection.by = []any{place}
		} else {
			connection.proxy = true
		}
		if why, entered := b.limiter.enter(connection); !entered {
			b.limiter.refused.WithLabelValues(why.Of.String()).Inc()
			refuse(conn, why)
			continue
		}
		return tracked{Conn: conn, entry: connection}, nil
	}
}

// placeOf returns the place of a connection; false for a trusted proxy.
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

// tracked is a connection that counts until it is closed.
type tracked struct {
	net.Conn

	entry *entry
}

// Close implements net.Conn.
func (t tracked) Close() error {
	t.entry.limiter.leave(t.entry)
	return t.Conn.Close() //nolint:wrapcheck // the server knows it by its type
}

// Context keys of a request's connection and of the request itself.
type (
	connectionKey struct{}
	visitKey      struct{}
)

// Context is an http.Server's ConnContext, for Handler.
func Context(ctx context.Context, conn net.Conn) context.Context {
	if counted, is := conn.(tracked); is {
		return context.WithValue(ctx, connectionKey{}, counted.entry)
	}
	return ctx
}

// State is an http.Server's ConnState. It tracks idle connections.
func State(conn net.Conn, state http.ConnState) {
	if counted, is := conn.(tracked); is && (state == http.StateActive || state == http.StateIdle) {
		counted.entry.limiter.use(counted.entry, state == http.StateActive)
	}
}

// visit is the limiter's view of a request.
type visit struct {
	entry  *entry // the counted entry: its connection, or itself if it came through a trusted proxy
	header http.Header
}

// Handler counts the requests of connections, and bounds those through trusted proxies by their forwarded
// place.
func (l *Limiter) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		connection, counted := request.Context().Value(connectionKey{}).(*entry)
		if counted {
			if why, begun := l.begin(connection); !begun {
				l.refused.WithLabelValues(why.Of.String()).Inc()
				answer(w, why)
				return
			}
			defer l.end(connection)
		}
		held := connection
		if place, proxied := l.proxied(request); proxied {
			held = &entry{limiter: l, by: []any{place}, requests: 1}
			if why, entered := l.enter(held); !entered {
				l.refused.WithLabelValues(why.Of.String()).Inc()
				answer(w, why)
				return
			}
			defer l.leave(held)
		}
		if held != nil && !held.proxy {
			request = request.WithContext(context.WithValue(request.Context(), visitKey{}, visit{held, w.Header()}))
		}
		next.ServeHTTP(w, request)
	})
}

// proxied returns the place of a request that comes through a trusted proxy.
func (l *Limiter) proxied(request *http.Request) (tenants.Place, bool) {
	peer, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil || !l.isTrusted(net.ParseIP(peer)) {
		return tenants.Place{}, false
	}
	return tenants.PlaceOf(l.address(request))
}

// Admitted assigns a request's connection to its key and account. key is an API key or a login. It returns a
// TooMany if they have too many in use; the answer then ends the connection.
func Admitted(ctx context.Context, key, account uuid.UUID) error {
	admitted, is := ctx.Value(visitKey{}).(visit)
	if !is {
		return nil
	}
	limiter := admitted.entry.limiter
	err := limiter.admit(admitted.entry, keyID(key), accountID(account))
	if crowded, is := errors.AsType[TooMany](err); is {
		limiter.refused.WithLabelValues(crowded.Of.String()).Inc()
		admitted.header.Set("Connection", "close")
	}
	return err
}

// Of is the kind of holder with too many connections.
type Of int

// Kinds of holders.
const (
	OfPlace   Of = iota // an unauthenticated network
	OfKey               // an API key or a login
	OfAccount           // an account
	OfShare             // an account with three quarters of all connections
	OfAll               // everyone
)

// String returns the limit's name in metrics.
func (o Of) String() string { return [...]string{"place", "key", "account", "share", "all"}[o] }

// TooMany is the error for too many connections that are all in use.
type TooMany struct {
	Of    Of
	Limit int // 0 if it depends on the process's file descriptors
}

// retry is the Retry-After value in seconds.
const retry = 5

// Error implements error with advice for the client.
func (e TooMany) Error() string {
	switch e.Of {
	case OfPlace:
		return fmt.Sprintf("%d connections without a valid key or login are open from this network, as many as this installation allows. Close some and try again.", e.Limit)
	case OfKey:
		return fmt.Sprintf("This API key or login has %d connections with a request under way, as many as this installation allows. Wait until some have ended and try again.", e.Limit)
	case OfAccount:
		return fmt.Sprintf("The account that owns this workspace has %d connections with a request under way, as many as this installation allows. Wait until some have ended and try again.", e.Limit)
	case OfShare:
		return "The account that owns this workspace uses three quarters of all connections of this server. Wait until some requests have ended and try again."
	case OfAll:
	}
	return fmt.Sprintf("All connections of this server are in use. Nothing is wrong with your request; try again in %d seconds.", retry)
}

// Status returns the status of the answer.
func (e TooMany) Status() int {
	if e.Of == OfAll {
		return http.StatusServiceUnavailable
	}
	return http.StatusTooManyRequests
}

// RetryAfter returns the value of that header.
func (TooMany) RetryAfter() string { return strconv.Itoa(retry) }

// Unwrap returns a tenants.TooMany.
func (TooMany) Unwrap() error {
	return tenants.TooMany{Wait: retry * time.Second, What: "connections with a request under way"}
}

// body returns the body of the answer, for requests in a format that is not known yet.
func (e TooMany) body() string {
	kind := "rate_limit_error"
	if e.Of == OfAll {
		kind = "overloaded_error"
	}
	return fmt.Sprintf(`{"error":{"type":%q,"message":%q}}`+"\n", kind, e.Error())
}

// answer answers a request, and ends its connection.
func answer(w http.ResponseWriter, err TooMany) {
	w.Header().Set("Retry-After", err.RetryAfter())
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(err.Status())
	_, _ = w.Write([]byte(err.body()))
}

// refusal bounds the time for telling a client that it has too many connections.
const refusal = time.Second

// refuse answers a connection before it is read, and closes it.
func refuse(conn net.Conn, err TooMany) {
	_ = conn.SetDeadline(time.Now().Add(refusal))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nRetry-After: %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		err.Status(), http.StatusText(err.Status()), err.RetryAfter(), len(err.body()), err.body())
	_ = conn.Close()
}
