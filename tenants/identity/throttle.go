package identity

import (
	"context"
	"fmt"
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
)

// Throttle slows down guessing.
type Throttle interface {
	// Check returns a *TooMany if there have been too many failures.
	Check(ctx context.Context, attempt string) error
	// Failed counts a failure.
	Failed(ctx context.Context, attempt string) error
}

// TooMany is tenants.ErrTooMany with the time after which to try again.
type TooMany struct{ Wait time.Duration }

// Error implements error.
func (e *TooMany) Error() string {
	return fmt.Sprintf("%s; try again in %s", tenants.ErrTooMany, e.Wait.Round(time.Second))
}

// Unwrap returns tenants.ErrTooMany.
func (e *TooMany) Unwrap() error { return tenants.ErrTooMany }

// LocalThrottle counts in this process.
type LocalThrottle struct {
	failures *otter.Cache[string, failures]
	now      func() time.Time
}

// failures are the failed attempts since a moment.
type failures struct {
	count int
	since time.Time
}

// NewLocalThrottle returns a LocalThrottle.
func NewLocalThrottle(now func() time.Time) (*LocalThrottle, error) {
	counts, err := otter.New(&otter.Options[string, failures]{MaximumSize: knownAttempts})
	if err != nil {
		return nil, fmt.Errorf("throttle: %w", err)
	}
	return &LocalThrottle{failures: counts, now: now}, nil
}

// Check implements Throttle.
func (t *LocalThrottle) Check(_ context.Context, attempt string) error {
	failed, ok := t.failures.GetIfPresent(attempt)
	if wait := failureWindow - t.now().Sub(failed.since); ok && failed.count >= maxFailures && wait > 0 {
		return &TooMany{Wait: wait}
	}
	return nil
}

// Failed implements Throttle.
func (t *LocalThrottle) Failed(_ context.Context, attempt string) error {
	now := t.now()
	t.failures.Compute(attempt, func(failed failures, found bool) (failures, otter.ComputeOp) {
		if !found || now.Sub(failed.since) >= failureWindow {
			failed = failures{since: now}
		}
		failed.count++
		return failed, otter.WriteOp
	})
	return nil
}

// RedisThrottle counts in Redis, for several replicas together.
type RedisThrottle struct{ limiter *redis_rate.Limiter }

// NewRedisThrottle returns a RedisThrottle.
func NewRedisThrottle(client *redis.Client) *RedisThrottle {
	return &RedisThrottle{limiter: redis_rate.NewLimiter(client)}
}

// Check implements Throttle.
func (t *RedisThrottle) Check(ctx context.Context, attempt string) error {
	state, err := t.limiter.AllowN(ctx, redisKey(attempt), failureLimit(), 0)
	if err != nil {
		return fmt.Errorf("throttle: %w", err)
	}
	if state.Remaining == 0 {
		return &TooMany{Wait: state.ResetAfter}
	}
	return nil
}

// Failed implements Throttle.
func (t *RedisThrottle) Failed(ctx context.Context, attempt string) error {
	if _, err := t.limiter.Allow(ctx, redisKey(attempt), failureLimit()); err != nil {
		return fmt.Errorf("throttle: %w", err)
	}
	return nil
}

func redisKey(attempt string) string { return "palimpsest:login:" + attempt }

func failureLimit() redis_rate.Limit {
	return redis_rate.Limit{Rate: maxFailures, Burst: maxFailures, Period: failureWindow}
}

// Interface guards.
var (
	_ Throttle = (*LocalThrottle)(nil)
	_ Throttle = (*RedisThrottle)(nil)
)
