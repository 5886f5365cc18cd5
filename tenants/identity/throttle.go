package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"palimpsest/pipeline/localcache"
	"palimpsest/tenants"
)

const knownCounts = 200_000

// LocalThrottle counts in this process.
type LocalThrottle struct {
	taken *localcache.Cache[string, taken]
	now   func() time.Time
}

// taken is the number of counts since a time.
type taken struct {
	count int
	since time.Time
}

// NewLocalThrottle returns a LocalThrottle.
func NewLocalThrottle(now func() time.Time) (*LocalThrottle, error) {
	counts, err := localcache.New[string](localcache.Options[taken]{MaximumSize: knownCounts, Now: now})
	if err != nil {
		return nil, fmt.Errorf("throttle: %w", err)
	}
	return &LocalThrottle{taken: counts, now: now}, nil
}

// Check implements tenants.Throttle.
func (t *LocalThrottle) Check(_ context.Context, counts ...tenants.Count) error {
	for _, count := range counts {
		if before, ok := t.taken.Get(keyOf(count)); ok {
			if err := before.full(count, t.now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Take implements tenants.Throttle.
func (t *LocalThrottle) Take(_ context.Context, counts ...tenants.Count) error {
	for _, count := range counts {
		if err := t.take(count); err != nil {
			return err
		}
	}
	return nil
}

func (t *LocalThrottle) take(count tenants.Count) (err error) {
	now := t.now()
	t.taken.Compute(keyOf(count), func(before taken, found bool) (taken, bool) {
		if !found || now.Sub(before.since) >= count.Window {
			return taken{count: 1, since: now}, true
		}
		if err = before.full(count, now); err != nil {
			return before, false
		}
		before.count++
		return before, true
	})
	return err
}

// full returns a tenants.TooMany if a count has reached its limit.
func (t taken) full(count tenants.Count, now time.Time) error {
	if wait := count.Window - now.Sub(t.since); t.count >= count.Most && wait > 0 {
		return tenants.TooMany{Wait: wait}
	}
	return nil
}

// keyOf returns the key of a count. Counts with different limits are separate.
func keyOf(count tenants.Count) string {
	return fmt.Sprintf("%s %d in %s", count.Of, count.Most, count.Window)
}

// Interface guards.
var (
	_ tenants.Throttle = (*LocalThrottle)(nil)
	_ tenants.Throttle = (*RedisThrottle)(nil)
)

const redisPatience = 500 * time.Millisecond

// RedisThrottle counts in Redis, for several replicas together. While Redis does not answer, each replica
// counts on its own.
type RedisThrottle struct {
	Log      *slog.Logger  // logs that Redis does not answer; set before use
	Patience time.Duration // timeout for Redis; set before use

	limiter *redis_rate.Limiter
	local   *LocalThrottle
}

// NewRedisThrottle returns a RedisThrottle without a log, which waits half a second for Redis.
func NewRedisThrottle(client *redis.Client) *RedisThrottle {
	local, err := NewLocalThrottle(time.Now)
	if err != nil {
		panic("identity: " + err.Error()) // its options are constants
	}
	return &RedisThrottle{
		Log: slog.New(slog.DiscardHandler), Patience: redisPatience,
		limiter: redis_rate.NewLimiter(client), local: local,
	}
}

// Check implements Throttle.
func (t *RedisThrottle) Check(ctx context.Context, counts ...tenants.Count) error {
	if err := t.local.Check(ctx, counts...); err != nil {
		return err
	}
	return t.each(ctx, counts, func(ctx context.Context, count tenants.Count) (*redis_rate.Result, bool, error) {
		state, err := t.limiter.AllowN(ctx, redisKey(count), rate(count), 0)
		return state, err == nil && state.Remaining == 0, err
	})
}

// Take implements Throttle.
func (t *RedisThrottle) Take(ctx context.Context, counts ...tenants.Count) error {
	// Both are kept up to date, because Redis may be gone at the next attempt.
	if err := t.local.Take(ctx, counts...); err != nil {
		return err
	}
	return t.each(ctx, counts, func(ctx context.Context, count tenants.Count) (*redis_rate.Result, bool, error) {
		state, err := t.limiter.Allow(ctx, redisKey(count), rate(count))
		return state, err == nil && state.Allowed == 0, err
	})
}

// each asks Redis for counts until one is full, and returns a tenants.TooMany for it.
func (t *RedisThrottle) each(ctx context.Context, counts []tenants.Count, ask func(context.Context, tenants.Count) (state *redis_rate.Result, full bool, err error)) error {
	asking, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	for _, count := range counts {
		state, full, err := ask(asking, count)
		if err != nil {
			t.Log.WarnContext(ctx, "failed logins and mails are counted by this replica alone", "error", err)
			return nil
		}
		if full {
			return tenants.TooMany{Wait: untilNext(count, state)}
		}
	}
	return nil
}

// redisKey returns the key of a count in Redis. It does not reveal the count's subject.
func redisKey(count tenants.Count) string {
	sum := sha256.Sum256([]byte(keyOf(count)))
	return "palimpsest:login:" + hex.EncodeToString(sum[:])
}

func rate(count tenants.Count) redis_rate.Limit {
	return redis_rate.Limit{Rate: count.Most, Burst: count.Most, Period: count.Window}
}

// untilNext returns the time until one more is allowed. Redis spreads them evenly over the window, and
// reports when all are free again.
func untilNext(count tenants.Count, state *redis_rate.Result) time.Duration {
	all := count.Window / time.Duration(count.Most) * time.Duration(count.Most-1)
	return max(state.ResetAfter-all, time.Second)
}
