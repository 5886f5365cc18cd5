package localcache

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"
)

// bounds are Options without the type of the values.
type bounds struct {
	size                    int
	weight                  uint64
	weigh                   func(value any) uint32
	afterWrite, afterAccess time.Duration
	now                     func() time.Time
}

// open returns the entries[K] of a cache for a kind of key. It keeps otter's functions out of the packages
// that call New, because it is not generic, returns no otter type, and is not inlined.
//
//go:noinline
func open(kind any, bounds bounds) (any, error) {
	switch kind.(type) {
	case [16]byte:
		return newTable[[16]byte](bounds)
	case [32]byte:
		return newTable[[32]byte](bounds)
	default:
		return newTable[string](bounds)
	}
}

// table implements entries.
type table[K Key] struct {
	*otter.Cache[K, any]
}

func newTable[K Key](bounds bounds) (*table[K], error) {
	options := otter.Options[K, any]{MaximumSize: bounds.size, MaximumWeight: bounds.weight}
	if bounds.weigh != nil {
		options.Weigher = func(_ K, value any) uint32 { return bounds.weigh(value) }
	}
	switch {
	case bounds.afterWrite > 0:
		options.ExpiryCalculator = otter.ExpiryWriting[K, any](bounds.afterWrite)
	case bounds.afterAccess > 0:
		options.ExpiryCalculator = otter.ExpiryAccessing[K, any](bounds.afterAccess)
	}
	if bounds.now != nil {
		options.Clock = clock(bounds.now)
	}
	cache, err := otter.New(&options)
	if err != nil {
		return nil, err
	}
	return &table[K]{cache}, nil
}

func (t *table[K]) load(ctx context.Context, key K, load func(context.Context) (any, error)) (any, error) {
	return t.Get(ctx, key, otter.LoaderFunc[K, any](func(ctx context.Context, _ K) (any, error) { return load(ctx) }))
}

func (t *table[K]) change(key K, whenPresent bool, change func(before any, found bool) (after any, write bool)) any {
	apply := func(before any, found bool) (any, otter.ComputeOp) {
		after, write := change(before, found)
		if write {
			return after, otter.WriteOp
		}
		return before, otter.CancelOp
	}
	if whenPresent {
		after, _ := t.ComputeIfPresent(key, func(before any) (any, otter.ComputeOp) { return apply(before, true) })
		return after
	}
	after, _ := t.Compute(key, apply)
	return after
}

// clock is a clock that does not tick. Expired entries are removed when they are found or when space is
// needed.
type clock func() time.Time

// NowNano implements otter.Clock.
func (c clock) NowNano() int64 { return c().UnixNano() }

// Tick implements otter.Clock.
func (c clock) Tick(time.Duration) <-chan time.Time { return nil }

// Interface guards.
var (
	_ otter.Clock       = clock(nil)
	_ entries[string]   = (*table[string])(nil)
	_ entries[[16]byte] = (*table[[16]byte])(nil)
	_ entries[[32]byte] = (*table[[32]byte])(nil)
)
