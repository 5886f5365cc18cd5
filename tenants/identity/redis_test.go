package identity_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"palimpsest/api/redistest"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// S19: replicas count together.
func TestReplicasThrottleTogetherThroughRedis(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	replicas := [2]identity.Throttle{}
	for i := range replicas {
		throttle := identity.NewRedisThrottle(redistest.Client(t, address))
		throttle.Patience = time.Minute // of a loaded machine
		replicas[i] = throttle
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
	// S5: its keys are of people, and name nobody; those of workspaces are in api/limits.
	keys, err := redistest.Client(t, address).Keys(t.Context(), "*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys %v, %v", keys, err)
	}
	for _, key := range keys {
		if digest, is := strings.CutPrefix(key, "rate:palimpsest:login:"); !is || len(digest) < 32 || strings.Contains(key, "ada") {
			t.Errorf("key %s", key)
		}
	}
}

// S19: without Redis, each replica counts by itself.
func TestReplicaThrottlesByItselfWithoutRedis(t *testing.T) {
	t.Parallel()
	address, stop := redistest.Start(t)
	throttle := identity.NewRedisThrottle(redistest.Client(t, address))
	throttle.Patience = time.Minute // of a loaded machine; nobody listens once it has stopped
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
