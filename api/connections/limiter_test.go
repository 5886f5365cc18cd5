package connections

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

// faked is a listener whose connections come from addresses that a test names.
type faked struct {
	net.Listener

	from []string
	ours []net.Conn
}

type fakedConn struct {
	net.Conn

	from net.Addr
}

func (f fakedConn) RemoteAddr() net.Addr { return f.from }

func (f *faked) Accept() (net.Conn, error) {
	if len(f.from) == 0 {
		return nil, io.EOF
	}
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }() // ends with near
	conn := fakedConn{near, &net.TCPAddr{IP: net.ParseIP(f.from[0]), Port: 1}}
	f.from, f.ours = f.from[1:], append(f.ours, near)
	return conn, nil
}

// accepted returns how many of the connections from some addresses are let in.
func accepted(t *testing.T, limiter *Limiter, from ...string) []net.Conn {
	t.Helper()
	listener := limiter.Listen(&faked{from: from})
	var all []net.Conn
	for {
		conn, err := listener.Accept()
		if err != nil {
			return all
		}
		t.Cleanup(func() { _ = conn.Close() })
		all = append(all, conn)
	}
}

// counted returns how many refusals the metric counts for a limit.
func counted(t *testing.T, limiter *Limiter, limit string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(limiter.Metrics())
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d metrics: %v", len(families), err)
	}
	for _, metric := range families[0].GetMetric() {
		if metric.GetLabel()[0].GetValue() == limit {
			return metric.GetCounter().GetValue()
		}
	}
	t.Fatalf("the limit %s isn't counted", limit)
	return 0
}

// asks returns the context of a request on a connection.
func asks(t *testing.T, limiter *Limiter, conn net.Conn) context.Context {
	t.Helper()
	request := httptest.NewRequestWithContext(Context(t.Context(), conn), http.MethodGet, "/", nil)
	var seen *http.Request
	limiter.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r })).ServeHTTP(httptest.NewRecorder(), request)
	return seen.Context()
}

// S18, S39: one place has so many connections at most, by network in IPv6; others and trusted
// proxies are let in; one that ends or whose sender is known makes room.
func TestOnePlaceHasSoManyConnections(t *testing.T) {
	t.Parallel()
	_, trusted, err := net.ParseCIDR("10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	limiter := NewLimiter(Limits{PerPlace: 2}, []*net.IPNet{trusted}, nil)
	first := accepted(t, limiter, "203.0.113.7", "203.0.113.7", "203.0.113.7", "203.0.113.7")
	if len(first) != 2 {
		t.Fatalf("%d connections of one address are let in", len(first))
	}
	if got := accepted(t, limiter, "2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:ffff::3", "2001:db8:1:3::1"); len(got) != 3 {
		t.Errorf("%d connections of two networks are let in, want 3", len(got))
	}
	if got := accepted(t, limiter, "10.1.1.1", "10.1.1.1", "10.1.1.1"); len(got) != 3 {
		t.Errorf("%d connections of a trusted proxy are let in, want all", len(got))
	}
	_ = first[0].Close()
	_ = first[0].Close()
	if got := accepted(t, limiter, "203.0.113.7", "203.0.113.7"); len(got) != 1 {
		t.Errorf("where one was closed %d are let in", len(got))
	}
	known := asks(t, limiter, first[1])
	if err := errors.Join(Admitted(known, uuid.New(), uuid.New()), Admitted(known, uuid.New(), uuid.New())); err != nil {
		t.Error(err)
	}
	_ = first[1].Close()
	if got := accepted(t, limiter, "203.0.113.7", "203.0.113.7"); len(got) != 1 {
		t.Errorf("where one is known %d are let in", len(got))
	}
	for _, conn := range accepted(t, limiter, "192.0.2.1", "192.0.2.2") {
		_ = conn.Close()
	}
	if refused := counted(t, limiter, "place"); refused != 5 {
		t.Errorf("%v refusals are counted, want 5", refused)
	}
	if left := len(limiter.holders); left != 3 {
		t.Errorf("%d places are remembered, want the three with a connection", left)
	}
	if got := accepted(t, NewLimiter(Limits{}, nil, nil), "203.0.113.7", "203.0.113.7", "203.0.113.7"); len(got) != 3 {
		t.Errorf("without a limit %d are let in", len(got))
	}
}

// Behind a load balancer the requests of each place are bounded, not the balancer's
// connections, until their sender is known.
// S39
func TestRequestsBehindATrustedProxyAreBoundedByTheirPlace(t *testing.T) {
	t.Parallel()
	_, trusted, err := net.ParseCIDR("10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	limiter := NewLimiter(Limits{PerPlace: 1}, []*net.IPNet{trusted}, func(r *http.Request) string { return r.Header.Get("X-Forwarded-For") })
	ask := func(peer, place string, during http.HandlerFunc) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("x"))
		request.RemoteAddr = peer
		request.Header.Set("X-Forwarded-For", place)
		answer := httptest.NewRecorder()
		limiter.Handler(during).ServeHTTP(answer, request)
		return answer.Code
	}
	nothing := func(http.ResponseWriter, *http.Request) {}
	inside := func(ctx context.Context) {
		for _, test := range []struct {
			peer, place string
			status      int
		}{
			{"10.1.1.1:1", "203.0.113.7", http.StatusTooManyRequests}, {"10.1.1.1:1", "203.0.113.8", http.StatusOK}, {"192.0.2.1:1", "203.0.113.7", http.StatusOK},
		} {
			if got := ask(test.peer, test.place, nothing); got != test.status {
				t.Errorf("%s for %s: %d, want %d", test.peer, test.place, got, test.status)
			}
		}
		if err := Admitted(ctx, uuid.New(), uuid.New()); err != nil {
			t.Error(err)
		}
		if got := ask("10.1.1.1:1", "203.0.113.7", nothing); got != http.StatusOK {
			t.Errorf("beside one whose sender is known: %d", got)
		}
	}
	ask("10.1.1.1:1", "203.0.113.7", func(_ http.ResponseWriter, r *http.Request) { inside(r.Context()) })
	if got := ask("10.1.1.1:1", "203.0.113.7", nothing); got != http.StatusOK {
		t.Errorf("after the first has ended: %d", got)
	}
}

// Each of several networks of proxies is trusted, whatever its place in the list.
func TestEveryTrustedNetworkIsTrusted(t *testing.T) {
	t.Parallel()
	networks := make([]*net.IPNet, 3)
	for i, text := range []string{"10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"} {
		var err error
		if _, networks[i], err = net.ParseCIDR(text); err != nil {
			t.Fatal(err)
		}
	}
	limiter := NewLimiter(Limits{PerPlace: 1}, networks, nil)
	for _, from := range []string{"10.1.1.1", "192.0.2.7", "2001:db8::1"} {
		if got := accepted(t, limiter, from, from); len(got) != 2 {
			t.Errorf("%d of two connections of the proxy %s are let in", len(got), from)
		}
	}
	for _, from := range []string{"11.1.1.1", "192.0.2.8", "2001:db9::1"} {
		if got := accepted(t, limiter, from, from); len(got) != 1 {
			t.Errorf("%d of two connections of %s are let in", len(got), from)
		}
	}
}
