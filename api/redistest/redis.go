// Package redistest gives each test a Redis server of its own.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// tries is how often Start tries a port, because another program may take a free one first.
const tries = 5

// Start starts a Redis server that ends with the test, or with stop. It fails the test if redis-server is not
// installed.
func Start(t testing.TB) (address string, stop func()) {
	t.Helper()
	var said string
	for range tries {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address = listener.Addr().String()
		_, port, err := net.SplitHostPort(address)
		if err = errors.Join(err, listener.Close()); err != nil {
			t.Fatal(err)
		}
		if stop, said = serve(t, port); stop != nil {
			return address, stop
		}
	}
	t.Fatalf("redis-server does not start:\n%s", said)
	return "", nil
}

// serve starts a server on a port and returns when it accepts connections; nil if it ended, with the reason
// in its output.
func serve(t testing.TB, port string) (stop func(), said string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	//nolint:gosec // a program by its name, and a port and a directory of the test
	server := exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	output, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatalf("start redis-server (install the package redis-server): %v", err)
	}
	lines, drained := bufio.NewScanner(output), make(chan struct{})
	stop = sync.OnceFunc(func() { cancel(); <-drained; _ = server.Wait() })
	t.Cleanup(stop)
	for lines.Scan() {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			go func() { // keeps reading, so that the server never blocks on its output
				defer close(drained)
				for lines.Scan() {
				}
			}()
			return stop, said
		}
	}
	close(drained)
	return nil, said
}

// Client returns a client for a server. Its calls end with their context; it is closed with the test. It
// doesn't retry, because a stopped server stays stopped.
func Client(t testing.TB, address string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
