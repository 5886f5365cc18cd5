package identity_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// S19: replicas count together.
func TestReplicasThrottleTogetherThroughRedis(t *testing.T) {
	t.Parallel()
	address, _ := startRedis(t)
	replicas := [2]identity.Throttle{}
	for i := range replicas {
		client := redis.NewClient(&redis.Options{Addr: address})
		t.Cleanup(func() { _ = client.Close() })
		replicas[i] = identity.NewRedisThrottle(client)
	}
	for i := range 10 {
		if err := replicas[i%2].Check(t.Context(), "ada"); err != nil {
			t.Fatalf("before failure %d: %v", i+1, err)
		}
		if err := replicas[i%2].Failed(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
	}
	for i, replica := range replicas {
		var tooMany tenants.TooMany
		if err := replica.Check(t.Context(), "ada"); !errors.As(err, &tooMany) || tooMany.Wait <= 0 || !errors.Is(err, tenants.ErrTooMany) {
			t.Errorf("replica %d after ten failures: %v", i, err)
		}
		if err := replica.Check(t.Context(), "grace"); err != nil {
			t.Errorf("another account: %v", err)
		}
	}
}

// S19: without Redis, each replica counts by itself.
func TestReplicaThrottlesByItselfWithoutRedis(t *testing.T) {
	t.Parallel()
	address, stop := startRedis(t)
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	throttle := identity.NewRedisThrottle(client)
	var said bytes.Buffer
	throttle.Log = slog.New(slog.NewTextHandler(&said, nil))
	fail := func(times int) {
		for range times {
			if err := throttle.Check(t.Context(), "ada"); err != nil {
				t.Fatal(err)
			}
			if err := throttle.Failed(t.Context(), "ada"); err != nil {
				t.Fatal(err)
			}
		}
	}

	fail(4)
	if said.Len() != 0 {
		t.Errorf("with Redis: %s", said.String())
	}
	stop()
	fail(6)
	if err := throttle.Check(t.Context(), "ada"); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("after ten failures, four of them with Redis: %v", err)
	}
	if !strings.Contains(said.String(), "counted by this replica alone") {
		t.Errorf("nobody learns that Redis is gone: %s", said.String())
	}
}

// startRedis starts a Redis server that ends with the test, or with stop.
func startRedis(t *testing.T) (address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err = errors.Join(err, listener.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatalf("start redis-server (install the package redis-server): %v", err)
	}
	stop = sync.OnceFunc(func() { cancel(); _ = server.Wait() })
	t.Cleanup(stop)
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: 50})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("redis-server does not answer: %v", err)
	}
	return address, stop
}
