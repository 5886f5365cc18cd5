// Package localcache keeps values in the memory of this process, bounded by their number or
// their weight. What is kept when there is no room for all follows W-TinyLFU, by otter
// (https://maypok86.github.io/otter).
//
// Otter is generic, and an instance of it has about 1,200 functions, which the compiler makes
// again in every package that sees the instance or a struct that holds it. So this package makes one
// for each kind of key and hides it from all others.
package localcache

import (
	"context"
	"time"
)

// Key is what values are found by: an id, a digest, or a text. Types whose underlying type is one
// of these arrays are used as they are.
type Key interface {
	[16]byte | [32]byte | string
}

// Options bound a cache. One of MaximumSize and MaximumWeight is set.
type Options[V any] struct {
	MaximumSize   int    // in entries
	MaximumWeight uint64 // in units of Weigher
	Weigher       func(value V) uint32

	ExpireAfterWrite  time.Duration    // 0: never
	ExpireAfterAccess time.Duration    // counts from reads, too; 0: never
	Now               func() time.Time // what entries expire by; nil: the machine's clock
}

// Cache is safe for concurrent use.
type Cache[K Key, V any] struct {
	entries entries[K]
}

// entries are a cache without the type of its values.
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

// New returns an empty cache. An error says which option is wrong.
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

// Set keeps a value.
func (c *Cache[K, V]) Set(key K, value V) { c.entries.Set(key, value) }

// SetIfAbsent keeps a value if the key has none.
func (c *Cache[K, V]) SetIfAbsent(key K, value V) { c.entries.SetIfAbsent(key, value) }

// SetExpiresAfter has the value of a key, if there is one, expire after a time of its own.
func (c *Cache[K, V]) SetExpiresAfter(key K, left time.Duration) {
	c.entries.SetExpiresAfter(key, left)
}

// Delete drops the value of a key.
func (c *Cache[K, V]) Delete(key K) { c.entries.Invalidate(key) }

// Clear drops all values.
func (c *Cache[K, V]) Clear() { c.entries.InvalidateAll() }

// Load returns the value of a key, which load makes if the key has no value. Calls for the same key at
// once share one load. What fails is not kept.
func (c *Cache[K, V]) Load(ctx context.Context, key K, load func(context.Context) (V, error)) (V, error) {
	kept, err := c.entries.load(ctx, key, func(ctx context.Context) (any, error) { return load(ctx) })
	return valueOf[V](kept), err
}

// Compute has change make the value of a key from the one before, which is V's zero value if the key has no value,
// and keeps it if change says so. No other call changes the value meanwhile. It returns what the cache
// has of the key afterwards.
func (c *Cache[K, V]) Compute(key K, change func(before V, found bool) (after V, write bool)) V {
	return valueOf[V](c.entries.change(key, false, func(before any, found bool) (any, bool) {
		return change(valueOf[V](before), found)
	}))
}

// ComputeIfPresent is Compute for a key that has a value; for any other it does nothing.
func (c *Cache[K, V]) ComputeIfPresent(key K, change func(before V) (after V, write bool)) {
	c.entries.change(key, true, func(before any, _ bool) (any, bool) { return change(valueOf[V](before)) })
}

// valueOf returns a value that was kept; V's zero value for nil.
func valueOf[V any](kept any) V {
	value, _ := kept.(V)
	return value
}
