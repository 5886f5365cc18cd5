package localcache

import "sync"

// Changes counts changes of a cache's values, so that the cache keeps no value that was read before one.
// The zero value is ready for use.
type Changes struct {
	mu    sync.Mutex
	count uint64
}

// Count returns how many changes were heard. A caller takes it before it reads a value.
func (c *Changes) Count() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Heard counts a change and has drop, which gets the new count, delete the values that may be old now.
func (c *Changes) Heard(drop func(count uint64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	drop(c.count)
}

// Keep has keep store a value that was read since a count, unless a change was heard meanwhile. No
// change is heard while keep runs.
func (c *Changes) Keep(since uint64, keep func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == since {
		keep()
	}
}
