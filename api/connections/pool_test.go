package connections

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// served is a server behind a limiter. Requests name their key and account; those to /hold are under way until
// release is called.
type served struct {
	t       *testing.T
	limiter *Limiter
	address string
	holding chan struct{} // has one for each request that is held
	held    atomic.Int32  // their number
	changed chan struct{} // has one for each change of a connection's state
	release func()
}

func serve(t *testing.T, limits Limits) *served {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	s := &served{t: t, limiter: NewLimiter(limits, nil, nil), address: listener.Addr().String(),
		holding: make(chan struct{}, 100), changed: make(chan struct{}, 1000), release: sync.OnceFunc(func() { close(waits) })}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	state := func(conn net.Conn, state http.ConnState) {
		State(conn, state)
		s.changed <- struct{}{}
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, ConnContext: Context, ConnState: state, Protocols: protocols, Handler: s.limiter.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Key"); key != "" {
			if err := Admitted(r.Context(), named(key), named(r.Header.Get("Account"))); err != nil {
				http.Error(w, err.Error(), http.StatusTooManyRequests)
				return
			}
		}
		if r.URL.Path == "/hold" {
			s.held.Add(1)
			s.holding <- struct{}{}
			<-waits
		}
	}))}
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.limiter.Listen(listener)) }()
	t.Cleanup(func() {
		s.release()
		_ = server.Close()
		<-done
		if s.limiter.taken != 0 || len(s.limiter.open) != 0 || len(s.limiter.holders) != 0 {
			t.Errorf("%d descriptors, %d connections and %d holders stay counted", s.limiter.taken, len(s.limiter.open), len(s.limiter.holders))
		}
	})
	return s
}

// named returns the id of a name.
func named(name string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(name)) }

// client is one connection of a client.
type client struct {
	net.Conn

	answers *bufio.Reader
}

func (s *served) dial() *client {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return &client{conn, bufio.NewReader(conn)}
}

// send sends a request of a key of an account.
func (c *client) send(path, key, account string) {
	_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nKey: %s\r\nAccount: %s\r\n\r\n", path, key, account)
}

// status returns the status of the next answer; 0 if the connection is closed.
func (c *client) status() (int, string) {
	response, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK && !response.Close {
		return response.StatusCode, "the connection stays open"
	}
	return response.StatusCode, string(body)
}

func (c *client) ask(key, account string) (int, string) {
	c.send("/", key, account)
	return c.status()
}

// idle opens connections that have each had one answer and stay open.
func (s *served) idle(count int, key, account string) []*client {
	s.t.Helper()
	all := make([]*client, count)
	for i := range all {
		all[i] = s.dial()
		if status, said := all[i].ask(key, account); status != http.StatusOK {
			s.t.Fatalf("connection %d of %s: %d %s", i, key, status, said)
		}
		s.settle()
	}
	return all
}

// settle returns once the server has noted that no connections are in use but those that are held.
func (s *served) settle() {
	for {
		s.limiter.mu.Lock()
		busy := 0
		for e := range s.limiter.open {
			if e.busy {
				busy++
			}
		}
		s.limiter.mu.Unlock()
		if busy <= int(s.held.Load()) {
			return
		}
		<-s.changed
	}
}

// hold opens connections with a request under way.
func (s *served) hold(count int, key, account string) []*client {
	s.t.Helper()
	all := make([]*client, count)
	for i := range all {
		all[i] = s.dial()
		all[i].send("/hold", key, account)
		select {
		case <-s.holding:
		case <-time.After(time.Minute):
			s.t.Fatalf("request %d of %s is not let in", i, key)
		}
	}
	return all
}

// open returns which of some connections still answer, once they are idle again.
func (s *served) open(clients []*client, key, account string) (indexes []int) {
	for i, c := range clients {
		if status, _ := c.ask(key, account); status == http.StatusOK {
			indexes = append(indexes, i)
		}
	}
	s.settle()
	return indexes
}

// S49: a key and an account have so many connections at most. Their oldest idle connection makes
// room for another; those with a request under way are left alone, and then one more is refused.
func TestKeysAndAccountsHaveSoManyConnections(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{PerKey: 3, PerAccount: 5})
	first := s.idle(4, "a", "ann")
	if got := s.open(first, "a", "ann"); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("of four connections of a key %v are open", got)
	}
	held := s.hold(3, "b", "ann") // 6 of ann: the oldest of key a is closed
	if got := s.open(first[1:], "a", "ann"); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("beside three of another key of the account %v are open", got)
	}
	status, said := s.dial().ask("b", "ann")
	if status != http.StatusTooManyRequests || !strings.Contains(said, "This API key or login has 3 connections with a request under way") {
		t.Errorf("one more of a key whose connections are all in use: %d %s", status, said)
	}
	more := s.hold(2, "c", "ann")
	if got := s.open(first, "a", "ann"); len(got) != 0 {
		t.Errorf("%v are open beside five that are in use", got)
	}
	status, said = s.dial().ask("d", "ann")
	if status != http.StatusTooManyRequests || !strings.Contains(said, "The account that owns this workspace has 5 connections") {
		t.Errorf("one more of the account: %d %s", status, said)
	}
	if got := s.open(s.idle(3, "e", "eve"), "e", "eve"); len(got) != 3 {
		t.Errorf("%v of another account are open", got)
	}
	s.release()
	for i, c := range append(held, more...) {
		if status, said := c.status(); status != http.StatusOK {
			t.Errorf("request %d, which was under way: %d %s", i, status, said)
		}
	}
}

// S49: where descriptors run low, idle connections of who has the most are closed, the oldest
// first, and none with a request under way. A request takes a descriptor for its provider, too.
func TestIdleConnectionsAreClosedWhereDescriptorsRunLow(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{Descriptors: 20})
	quiet := s.idle(2, "q", "quiet")
	strangers := []*client{s.dial(), s.dial(), s.dial()}
	held := s.hold(3, "h", "held")  // 6
	flood := s.idle(10, "f", "flo") // all but the first fit
	if got := s.open(flood, "f", "flo"); !slices.Contains(got, 9) || slices.Contains(got, 0) || len(got) < 7 {
		t.Errorf("of the flood %v are open", got)
	}
	if got := s.open(quiet, "q", "quiet"); len(got) != 2 {
		t.Errorf("of the two of another account %v are open", got)
	}
	for _, c := range strangers {
		if status, _ := c.ask("", ""); status != http.StatusOK {
			t.Error("a stranger of three was closed before the flood")
		}
	}
	s.settle()
	for range 7 {
		held = append(held, s.hold(1, "h", "other "+uuid.NewString())...) // 20: all are in use
	}
	status, said := s.dial().status()
	if status != http.StatusServiceUnavailable || !strings.Contains(said, "try again in 5 seconds") {
		t.Errorf("where all are in use: %d %s", status, said)
	}
	s.release()
	for i, c := range held {
		if status, said := c.status(); status != http.StatusOK {
			t.Errorf("request %d, which was under way: %d %s", i, status, said)
		}
	}
}

// S49: a request that finds no descriptor for its provider is told so, and its connection ends.
func TestRequestWithoutADescriptorIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{Descriptors: 5})
	held := append(s.hold(1, "a", "ann"), s.hold(1, "b", "bob")...)
	status, said := s.dial().ask("c", "eve")
	if status != http.StatusServiceUnavailable || !strings.Contains(said, "All connections of this server are in use") {
		t.Errorf("status %d: %s", status, said)
	}
	s.release()
	for _, c := range held {
		if status, said := c.status(); status != http.StatusOK {
			t.Errorf("a request that was under way: %d %s", status, said)
		}
	}
}

// S49: a connection is in use until its answer is written, not only until the handler returns.
func TestAnswerThatIsWrittenIsNotCutOff(t *testing.T) {
	t.Parallel()
	limiter := NewLimiter(Limits{}, nil, nil)
	conn := accepted(t, limiter, "192.0.2.1")[0]
	State(conn, http.StateActive)
	asks(t, limiter, conn)
	if limiter.shed() {
		t.Error("it was closed before its answer was written")
	}
	State(conn, http.StateIdle)
	if !limiter.shed() {
		t.Error("an idle connection is not closed where the process has no descriptors left")
	}
}

// S49: a trusted proxy's connection carries requests of many, so it counts as nobody's.
func TestConnectionOfATrustedProxyIsNobodys(t *testing.T) {
	t.Parallel()
	_, trusted, err := net.ParseCIDR("10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	limiter, key := NewLimiter(Limits{PerKey: 1}, []*net.IPNet{trusted}, nil), uuid.New()
	for _, conn := range accepted(t, limiter, "10.1.1.1", "10.1.1.1", "10.1.1.1") {
		State(conn, http.StateActive)
		if err := Admitted(asks(t, limiter, conn), key, uuid.New()); err != nil {
			t.Error(err)
		}
	}
}

// S49: an account takes three quarters of the descriptors at most, with all keys.
func TestAccountLeavesAQuarterOfTheDescriptors(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{Descriptors: 40})
	for i := range 15 {
		s.hold(1, fmt.Sprint("key ", i), "greedy")
	}
	status, said := s.dial().ask("one more", "greedy")
	if status != http.StatusTooManyRequests || !strings.Contains(said, "three quarters") {
		t.Errorf("one more: %d %s", status, said)
	}
	if got := s.open(s.idle(4, "q", "quiet"), "q", "quiet"); len(got) != 4 {
		t.Errorf("of another account %v are open", got)
	}
}

// S49: connections of HTTP/2 are counted and closed in the same way.
func TestConnectionsOfHTTP2AreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, Limits{PerKey: 2})
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	ask := func(transport *http.Transport, path string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address+path, nil)
		if err != nil {
			return err
		}
		request.Header = http.Header{"Key": {"a"}, "Account": {"ann"}}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
			return fmt.Errorf("%s: %s", response.Proto, response.Status)
		}
		return nil
	}
	clients := make([]*http.Transport, 3)
	for i := range clients {
		clients[i] = &http.Transport{Protocols: protocols}
		t.Cleanup(clients[i].CloseIdleConnections)
	}
	held := make(chan error, 2)
	go func() { held <- ask(clients[0], "/hold") }()
	<-s.holding
	for _, i := range []int{0, 1, 1, 2} { // the third closes that of the second, which is idle
		if err := ask(clients[i], "/"); err != nil {
			t.Errorf("client %d: %v", i, err)
		}
		s.settle()
	}
	go func() { held <- ask(clients[2], "/hold") }()
	<-s.holding
	if err := ask(clients[1], "/"); err == nil {
		t.Error("one more is let in where all are in use")
	}
	s.release()
	if err := errors.Join(<-held, <-held); err != nil {
		t.Errorf("a request that was under way: %v", err)
	}
}
