package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"

	"palimpsest/tenants"
)

const (
	maxFailures   = 10 // failed logins of one address from one place …
	failureWindow = 15 * time.Minute
	knownAttempts = 100_000
	redisPatience = 500 * time.Millisecond
)

// Throttle slows down guessing.
type Throttle interface {
	// Check returns a tenants.TooMany if there have been too many failures.
	Check(ctx context.Context, attempt string) error
	// Failed counts a failure.
	Failed(ctx context.Context, attempt string) error
	// Over returns a Throttle that counts beside this one, over another time.
	Over(window time.Duration) Throttle
}

// LocalThrottle counts in this process.
type LocalThrottle struct {
	failures *otter.Cache[string, failures]
	window   time.Duration
	now      func() time.Time
}

// failures are the failed attempts since a moment.
type failures struct {
	count int
	since time.Time
}

// NewLocalThrottle returns a LocalThrottle.
func NewLocalThrottle(now func() time.Time) (*LocalThrottle, error) {
	counts, err := otter.New(&otter.Options[string, failures]{MaximumSize: knownAttempts, Clock: cacheClock(now)})
	if err != nil {
		return nil, fmt.Errorf("throttle: %w", err)
	}
	return &LocalThrottle{failures: counts, window: failureWindow, now: now}, nil
}

// Over implements Throttle. Attempts are told apart by their window.
func (t *LocalThrottle) Over(window time.Duration) Throttle {
	over := *t
	over.window = window
	return &over
}

// Check implements Throttle.
func (t *LocalThrottle) Check(_ context.Context, attempt string) error {
	failed, ok := t.failures.GetIfPresent(t.counted(attempt))
	if wait := t.window - t.now().Sub(failed.since); ok && failed.count >= maxFailures && wait > 0 {
		return tenants.TooMany{Wait: wait}
	}
	return nil
}

// Failed implements Throttle.
func (t *LocalThrottle) Failed(_ context.Context, attempt string) error {
	now := t.now()
	t.failures.Compute(t.counted(attempt), func(failed failures, found bool) (failures, otter.ComputeOp) {
		if !found || now.Sub(failed.since) >= t.window {
			failed = failures{since: now}
		}
		failed.count++
		return failed, otter.WriteOp
	})
	return nil
}

// counted is what an attempt is counted as.
func (t *LocalThrottle) counted(attempt string) string { return t.window.String() + " " + attempt }

// RedisThrottle counts in Redis, for several replicas together. While Redis does
// not answer, each replica counts by itself.
type RedisThrottle struct {
	Log      *slog.Logger  // learns that Redis does not answer; set before use
	Patience time.Duration // with Redis; set before use

	limiter *redis_rate.Limiter
	local   *LocalThrottle
	window  time.Duration
}

// NewRedisThrottle returns a RedisThrottle that tells nobody when Redis does not
// answer, and waits for it half a second.
func NewRedisThrottle(client *redis.Client) *RedisThrottle {
	local, err := NewLocalThrottle(time.Now)
	if err != nil {
		panic("identity: " + err.Error()) // its options are constants
	}
	return &RedisThrottle{
		Log: slog.New(slog.DiscardHandler), Patience: redisPatience,
		limiter: redis_rate.NewLimiter(client), local: local, window: failureWindow,
	}
}

// Over implements Throttle.
func (t *RedisThrottle) Over(window time.Duration) Throttle {
	over := *t
	over.window = window
	over.local = &LocalThrottle{failures: t.local.failures, window: window, now: t.local.now}
	return &over
}

// Check implements Throttle.
func (t *RedisThrottle) Check(ctx context.Context, attempt string) error {
	if err := t.local.Check(ctx, attempt); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	state, err := t.limiter.AllowN(asking, t.key(attempt), t.limit(), 0)
	if err != nil {
		t.Log.WarnContext(ctx, "failed logins are counted by this replica alone", "error", err)
		return nil
	}
	if state.Remaining == 0 {
		return tenants.TooMany{Wait: state.ResetAfter}
	}
	return nil
}

// Failed implements Throttle.
func (t *RedisThrottle) Failed(ctx context.Context, attempt string) error {
	asking, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	if _, err := t.limiter.Allow(asking, t.key(attempt), t.limit()); err != nil {
		t.Log.WarnContext(ctx, "failed logins are counted by this replica alone", "error", err)
	}
	// Both are kept up to date: Redis may be gone at the next attempt.
	return t.local.Failed(ctx, attempt)
}

// redisKey is where failures are counted. It does not show whose they are.
func redisKey(attempt string) string {
	sum := sha256.Sum256([]byte(attempt))
	return "palimpsest:login:" + hex.EncodeToString(sum[:])
}

// key is where this throttle counts an attempt.
func (t *RedisThrottle) key(attempt string) string {
	if t.window == failureWindow {
		return redisKey(attempt)
	}
	return redisKey(t.window.String() + " " + attempt)
}

func (t *RedisThrottle) limit() redis_rate.Limit {
	return redis_rate.Limit{Rate: maxFailures, Burst: maxFailures, Period: t.window}
}

// Interface guards.
var (
	_ Throttle = (*LocalThrottle)(nil)
	_ Throttle = (*RedisThrottle)(nil)
)
