package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palimpsest/api/upstream/providertest"
)

// S18: clients that never end their headers hold a connection and nothing else. Five
// hundred of them keep nobody from being answered, and are cut off when their time
// is up.
func TestSlowHeadersHarmNobodyAndAreCutOff(t *testing.T) {
	t.Parallel()
	w := start(t, providertest.Config{}).tenant("patient")
	slow := make([]net.Conn, 500)
	for i := range slow {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", w.program.addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		if _, err := io.WriteString(connection, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Slow:"); err != nil {
			t.Fatal(err)
		}
		slow[i] = connection
	}
	for range 50 {
		if response, answer := w.post("/v1/messages", []byte(smallMessage), nil); response.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %s", response.StatusCode, answer)
		}
	}
	for i, connection := range slow {
		if err := connection.SetReadDeadline(time.Now().Add(headerTimeout + time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, connection); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
			t.Fatalf("connection %d is not cut off: %v", i, err)
		}
	}
}

// S23: a program that is stopped is not ready any more at once, takes no new
// connections, and lets fifty open streams end.
func TestStoppedProgramLetsItsStreamsEnd(t *testing.T) {
	t.Parallel()
	const event = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	goOn := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(out, event)
		_ = http.NewResponseController(out).Flush()
		<-goOn
		_, _ = io.WriteString(out, event)
	}))
	t.Cleanup(provider.Close)
	i := start(t, providertest.Config{})
	w := i.tenant("streams")
	streams := make([]io.ReadCloser, 50)
	for n := range streams {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url("/v1/messages"), strings.NewReader(strings.Replace(smallMessage, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"X-Api-Key": {w.key}, "X-Palimpsest-Provider-Key": {"sk-once"}, "X-Palimpsest-Base-Url": {provider.URL}}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		streams[n] = response.Body
		if _, err := io.ReadFull(response.Body, make([]byte, len(event))); err != nil {
			t.Fatal(err)
		}
	}

	stopped := make(chan struct{})
	go func() {
		i.program.stop(context.WithoutCancel(t.Context()))
		close(stopped)
	}()
	w.until(func() bool { return i.program.health.draining.Load() })
	answer := httptest.NewRecorder()
	i.program.admin.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d", answer.Code)
	}
	w.until(func() bool { // its listener closes
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", i.program.addr())
		if err == nil {
			_ = connection.Close()
		}
		return err != nil
	})
	select {
	case <-stopped:
		t.Error("it did not wait for its streams")
	default:
	}
	close(goOn)
	for n, stream := range streams {
		if rest, err := io.ReadAll(stream); err != nil || string(rest) != event {
			t.Errorf("stream %d ends with %q, %v", n, rest, err)
		}
		_ = stream.Close()
	}
	<-stopped
}
