package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations/dbtest"
	"palimpsest/tenants/guard"
)

// withoutEnd opens connections whose headers never end.
func withoutEnd(t *testing.T, address string, count int) []net.Conn {
	t.Helper()
	slow := make([]net.Conn, count)
	for i := range slow {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		if _, err := io.WriteString(connection, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Slow:"); err != nil {
			t.Fatal(err)
		}
		slow[i] = connection
	}
	return slow
}

// S18: clients that never end their headers hold a connection and nothing else. Five
// hundred of them keep nobody from being answered.
func TestSlowHeadersHarmNobody(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("patient")
	withoutEnd(t, w.program.addr(), 500)
	for range 50 {
		if response, answer := w.post("/v1/messages", []byte(smallMessage), nil); response.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %s", response.StatusCode, answer)
		}
	}
}

// S18: connections whose headers do not end are cut off when their time is up.
func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	ending := &setup.Ending{}
	servers := newServers(slog.New(slog.DiscardHandler), ending, guard.New(false))
	if servers.headers != headerTimeout {
		t.Errorf("the program cuts them off after %s", servers.headers)
	}
	servers.headers = 10 * time.Millisecond
	listener, err := servers.listen(t.Context(), "PALIMPSEST_ADDR", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := servers.serve(listener, http.NotFoundHandler())
	t.Cleanup(func() { _ = server.Close() })
	for i, connection := range withoutEnd(t, listener.Addr().String(), 20) {
		if err := connection.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, connection); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
			t.Fatalf("connection %d is not cut off: %v", i, err)
		}
	}
}

// held are streams whose provider has sent one event, and waits before it sends the last.
type held struct {
	streams []io.ReadCloser
	goOn    func()
}

const heldEvent = "event: ping\ndata: {\"type\":\"ping\"}\n\n"

// holding starts a provider whose streams end once goOn is called.
func holding(t testing.TB) (url string, goOn func()) {
	t.Helper()
	waits := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(out, heldEvent)
		_ = http.NewResponseController(out).Flush()
		select {
		case <-waits:
			_, _ = io.WriteString(out, heldEvent)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(provider.Close)
	goOn = sync.OnceFunc(func() { close(waits) })
	t.Cleanup(goOn)
	return provider.URL, goOn
}

// hold opens fifty streams and reads their first event.
func (w *tenant) hold() held {
	w.t.Helper()
	url, goOn := holding(w.t)
	h := held{streams: make([]io.ReadCloser, 50), goOn: goOn}
	for n := range h.streams {
		h.streams[n] = w.stream(http.Header{"X-Palimpsest-Provider-Key": {"sk-once"}, "X-Palimpsest-Base-Url": {url}})
	}
	return h
}

// stream opens a stream with headers and reads its first event.
func (w *tenant) stream(header http.Header) io.ReadCloser {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url("/v1/messages"), strings.NewReader(strings.Replace(smallMessage, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header = header
	header.Set("X-Api-Key", w.key)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, len(heldEvent))); err != nil {
		w.t.Fatal(err)
	}
	return response.Body
}

// end lets the provider go on, and has every stream end with its last event.
func (h held) end(t *testing.T) {
	t.Helper()
	h.goOn()
	for n, stream := range h.streams {
		if rest, err := io.ReadAll(stream); err != nil || string(rest) != heldEvent {
			t.Errorf("stream %d ends with %q, %v", n, rest, err)
		}
		_ = stream.Close()
	}
}

// isClosed reports whether an address takes no connections.
func isClosed(ctx context.Context, address string) bool {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = connection.Close()
	}
	return err != nil
}

// S23: a program that is stopped is not ready any more at once, takes no new
// connections, and lets fifty open streams end.
func TestStoppedProgramLetsItsStreamsEnd(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("streams")
	open := w.hold()

	stopped := make(chan struct{})
	go func() {
		i.program.stop(context.WithoutCancel(t.Context()))
		close(stopped)
	}()
	w.until(func() bool { return i.program.draining.Load() })
	answer := httptest.NewRecorder()
	i.program.admin.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d", answer.Code)
	}
	w.until(func() bool { return isClosed(t.Context(), i.program.addr()) })
	select {
	case <-stopped:
		t.Error("it did not wait for its streams")
	default:
	}
	open.end(t)
	<-stopped
}

// S23: a process that is sent SIGTERM lets fifty open streams end, and ends with 0.
func TestTerminatedProcessLetsItsStreamsEnd(t *testing.T) {
	t.Parallel()
	c := &child{t: t, binary: buildtest.Palimpsest(t), dir: t.TempDir(), databaseURL: dbtest.Empty(t).OwnerURL}
	c.start()
	w := &tenant{instance: &instance{t: t, double: providertest.NewServer(t, providerdouble.Config{Key: providerKey})}}
	c.adopt(w)
	w.join("streams")
	open := w.hold()

	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.until(func() bool { return isClosed(t.Context(), c.addr) })
	open.end(t)
	if err := c.command.Wait(); err != nil {
		t.Errorf("the process ended with %v:\n%s", err, c.log.String())
	}
}
