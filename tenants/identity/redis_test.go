package identity_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"palimpsest/api/redistest"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// ten is a count that may be taken ten times an hour.
func ten(of string) tenants.Count { return tenants.Count{Of: of, Most: 10, Window: time.Hour} }

// S19: replicas count together.
func TestReplicasThrottleTogetherThroughRedis(t *testing.T) {
	t.Parallel()
	address, _ := redistest.Start(t)
	replicas := [2]tenants.Throttle{}
	for i := range replicas {
		throttle := identity.NewRedisThrottle(redistest.Client(t, address))
		throttle.Patience = time.Minute // of a loaded machine
		replicas[i] = throttle
	}
	ada, grace := ten("ada"), ten("grace")
	for i := range 10 {
		if err := replicas[i%2].Check(t.Context(), grace, ada); err != nil {
			t.Fatalf("before failure %d: %v", i+1, err)
		}
		if err := replicas[i%2].Take(t.Context(), ada); err != nil {
			t.Fatal(err)
		}
	}
	for i, replica := range replicas {
		for name, try := range map[string]func(context.Context, ...tenants.Count) error{"check": replica.Check, "take": replica.Take} {
			// An hour is shared out evenly: one more is free after a tenth of it.
			var tooMany tenants.TooMany
			if err := try(t.Context(), ada); !errors.As(err, &tooMany) || tooMany.Wait <= 0 || tooMany.Wait > 6*time.Minute || !errors.Is(err, tenants.ErrTooMany) {
				t.Errorf("replica %d, %s after ten failures: %v", i, name, err)
			}
		}
		if err := replica.Check(t.Context(), grace); err != nil {
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
			if err := throttle.Check(t.Context(), ten("ada")); err != nil {
				t.Fatal(err)
			}
			if err := throttle.Take(t.Context(), ten("ada")); err != nil {
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
	if err := throttle.Check(t.Context(), ten("ada")); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("after ten failures, four of them with Redis: %v", err)
	}
	if !strings.Contains(said.String(), "counted by this replica alone") {
		t.Errorf("nobody learns that Redis is gone: %s", said.String())
	}
}
