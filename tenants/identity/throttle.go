package identity

import (
	"context"
	"fmt"
	"time"

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
