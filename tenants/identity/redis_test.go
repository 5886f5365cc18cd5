package identity_test

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// S19: replicas count together.
func TestReplicasThrottleTogetherThroughRedis(t *testing.T) {
	t.Parallel()
	address := startRedis(t)
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
		var tooMany *identity.TooMany
		if err := replica.Check(t.Context(), "ada"); !errors.As(err, &tooMany) || tooMany.Wait <= 0 || !errors.Is(err, tenants.ErrTooMany) {
			t.Errorf("replica %d after ten failures: %v", i, err)
		}
		if err := replica.Check(t.Context(), "grace"); err != nil {
			t.Errorf("another account: %v", err)
		}
	}
}

// startRedis starts a Redis server that ends with the test.
func startRedis(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatalf("start redis-server (install the package redis-server): %v", err)
	}
	t.Cleanup(func() { cancel(); _ = server.Wait() })
	address := "127.0.0.1:" + port
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: 50})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("redis-server does not answer: %v", err)
	}
	return address
}
