// Package localcache keeps values in the memory of this process, limited by their number or weight. Otter
// (https://maypok86.github.io/otter) decides by W-TinyLFU which values to keep.
//
// Otter is generic. An instance of it has about 1,200 functions, which the compiler generates again in every
// package that sees the instance or a struct with it. Therefore this package creates one instance for each
// kind of key and hides it from all others.
package localcache

import (
	"context"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
)

// Key is the key of a value: an id, a digest, or a text. Types based on one of these arrays can be used
// directly.
type Key interface {
	[16]byte | [32]byte | string
}

// Options limit a cache. One of MaximumSize and MaximumWeight must be set.
type Options[V any] struct {
	MaximumSize   int    // in entries
	MaximumWeight uint64 // in units of Weigher
	Weigher       func(value V) uint32

	ExpireAfterWrite  time.Duration    // 0 means never
	ExpireAfterAccess time.Duration    // renewed by reads; 0 means never
	Now               func() time.Time // optional; nil for the machine's clock
}

// Cache is safe for concurrent use.
type Cache[K Key, V any] struct {
	entries entries[K]
}

// entries is a cache without its value type.
type entries[K Key] interface {
	GetIfPresent(key K) (any, bool)
	Set(key K, value any) (any, bool)
	SetIfAbsent(key K, value any) (any, bool)
	SetExpiresAfter(key K, left time.Duration)
	Invalidate(key K) (any, bool)
	InvalidateAll()
	load(ctx context.Context, key K, load func(context.Context) (any, error)) (any, error)
	change(key K, whenPresent bool, change func(before any, found bool) (after any, write bool)) any
}

// New returns an empty cache. The error describes an invalid option.
func New[K Key, V any](options Options[V]) (*Cache[K, V], error) {
	bounds := bounds{
		size: options.MaximumSize, weight: options.MaximumWeight,
		afterWrite: options.ExpireAfterWrite, afterAccess: options.ExpireAfterAccess, now: options.Now,
	}
	if options.Weigher != nil {
		bounds.weigh = func(value any) uint32 { return options.Weigher(valueOf[V](value)) }
	}
	var kind K
	opened, err := open(kind, bounds)
	if err != nil {
		return nil, err
	}
	kept, _ := opened.(entries[K])
	return &Cache[K, V]{entries: kept}, nil
}

// Get returns the value of a key.
func (c *Cache[K, V]) Get(key K) (value V, found bool) {
	kept, found := c.entries.GetIfPresent(key)
	return valueOf[V](kept), found
}

// Set stores a value.
func (c *Cache[K, V]) Set(key K, value V) { c.entries.Set(key, value) }

// SetIfAbsent stores a value unless the key has one.
func (c *Cache[K, V]) SetIfAbsent(key K, value V) { c.entries.SetIfAbsent(key, value) }

// SetExpiresAfter changes the remaining lifetime of a key's value, if present.
func (c *Cache[K, V]) SetExpiresAfter(key K, left time.Duration) {
	c.entries.SetExpiresAfter(key, left)
}

// Delete drops the value of a key.
func (c *Cache[K, V]) Delete(key K) { c.entries.Invalidate(key) }

// Clear drops all values.
func (c *Cache[K, V]) Clear() { c.entries.InvalidateAll() }

// Load returns the value of a key; if absent, it calls load. Concurrent calls for the same key share one
// load. Errors are not cached.
func (c *Cache[K, V]) Load(ctx context.Context, key K, load func(context.Context) (V, error)) (V, error) {
	kept, err := c.entries.load(ctx, key, func(ctx context.Context) (any, error) { return load(ctx) })
	return valueOf[V](kept), err
}

// Compute calls change with the value of a key, or V's zero value if absent, and stores the result if change
// says so. No other call changes the value meanwhile. It returns the key's value in the cache afterwards.
func (c *Cache[K, V]) Compute(key K, change func(before V, found bool) (after V, write bool)) V {
	return valueOf[V](c.entries.change(key, false, func(before any, found bool) (any, bool) {
		return change(valueOf[V](before), found)
	}))
}

// ComputeIfPresent is Compute for a key with a value; otherwise it has no effect.
func (c *Cache[K, V]) ComputeIfPresent(key K, change func(before V) (after V, write bool)) {
	c.entries.change(key, true, func(before any, _ bool) (any, bool) { return change(valueOf[V](before)) })
}

// valueOf returns a stored value; V's zero value for nil.
func valueOf[V any](kept any) V {
	value, _ := kept.(V)
	return value
}

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

// Changes counts changes of a cache's values, so that the cache does not keep a value from before a change.
// The zero value is ready for use.
type Changes struct {
	mu    sync.Mutex
	count uint64
}

// Count returns the number of changes so far. Callers get it before they read a value.
func (c *Changes) Count() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Heard counts a change and calls drop with the new count to delete the outdated values.
func (c *Changes) Heard(drop func(count uint64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	drop(c.count)
}

// Keep calls keep to store a value read at a count, unless there was a change since. Changes wait until keep
// returns.
func (c *Changes) Keep(since uint64, keep func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == since {
		keep()
	}
}
