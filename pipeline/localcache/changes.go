package localcache

import "sync"

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
