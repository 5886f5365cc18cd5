package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/migrations/dbtest"
)

// descriptors is how many files the program of a test may have open.
const descriptors = 400

// keepAlive opens connections on which an API key sends a request that is answered, and which stay open.
func (w *tenant) keepAlive(count int) {
	w.t.Helper()
	for i := range count {
		conn, err := new(net.Dialer).DialContext(w.t.Context(), "tcp", w.program.addr())
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = fmt.Fprintf(conn, "GET /v1/pipeline HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\n\r\n", w.key)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			w.t.Fatalf("connection %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// fresh sends a request on a connection of its own, and returns its status; an error if that takes long.
func fresh(ctx context.Context, address, path, key, body string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Close = true
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// S49: a key that keeps more connections open than the program has descriptors for keeps neither another
// tenant nor /readyz from being answered.
func TestIdleConnectionsOfOneKeyHarmNobody(t *testing.T) {
	t.Parallel()
	c := &child{t: t, binary: buildtest.Palimpsest(t), dir: t.TempDir(), databaseURL: dbtest.New(t).OwnerURL, files: descriptors}
	c.start()
	double := &instance{t: t, double: providertest.NewServer(t, providerdouble.Config{Key: providerKey, Count: counter(t).Count})}
	greedy, quiet := &tenant{instance: double}, &tenant{instance: double}
	c.adopt(greedy)
	greedy.join("greedy")
	quiet.join("quiet")
	greedy.keepAlive(descriptors + 100)
	for range 20 {
		if status, err := fresh(t.Context(), c.addr, "/v1/messages", quiet.key, smallMessage); status != http.StatusOK {
			t.Fatalf("another tenant: status %d, %v", status, err)
		}
		if status, err := fresh(t.Context(), c.admin, "/readyz", "", ""); status != http.StatusOK {
			t.Fatalf("/readyz: status %d, %v", status, err)
		}
	}
}
