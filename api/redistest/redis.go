// Package redistest gives each test a Redis server of its own.
package redistest

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Start starts a Redis server that ends with the test, or with stop. It fails the
// test where redis-server is not installed.
func Start(t testing.TB) (address string, stop func()) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err = errors.Join(err, listener.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	//nolint:gosec // a program by its name, and a port and a directory of the test
	server := exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatalf("start redis-server (install the package redis-server): %v", err)
	}
	stop = sync.OnceFunc(func() { cancel(); _ = server.Wait() })
	t.Cleanup(stop)
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: 50})
	defer func() { _ = client.Close() }()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("redis-server does not answer: %v", err)
	}
	return address, stop
}

// Client returns a client for a server whose calls end with their context; it is
// closed with the test.
func Client(t testing.TB, address string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
