package providerdouble

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

const (
	lookback   = 20 // positions that a breakpoint looks back, itself included
	shortTTL   = 5 * time.Minute
	longTTL    = time.Hour
	openaiTTL  = 10 * time.Minute
	openaiStep = 128
	cacheLimit = 1 << 18 // entries after which the stale ones are dropped
)

// cacheUse is the cache's part in a prompt, in reported tokens.
type cacheUse struct {
	read, write, write1h, fresh int
}

// entry is a cached prefix.
type entry struct {
	expires time.Time
	ttl     time.Duration
}

// cacheKey identifies a prefix within an account.
type cacheKey struct {
	account string
	sum     [sha256.Size]byte
}

// promptCache simulates the prompt caches of all accounts.
type promptCache struct {
	mu      sync.Mutex
	entries map[cacheKey]*entry
}

// useBreakpoints caches as Anthropic does: it only writes prefixes that end at a marker, and each marker
// finds prefixes written at most 19 positions before it.
func (c *promptCache) useBreakpoints(account string, list []position, shortest int, now time.Time, reported func(int) int) cacheUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	upTo := cumulative(list)
	hit := c.longestHit(account, list, now)
	use := cacheUse{}
	if hit >= 0 {
		use.read = reported(upTo[hit])
	}
	written, written1h := hit, hit
	for i, p := range list {
		if p.cache == nil || i <= hit || reported(upTo[i]) < shortest {
			continue
		}
		ttl := shortTTL
		if p.cache.hour {
			ttl, written1h = longTTL, i
		}
		c.put(cacheKey{account, p.sum}, ttl, now)
		written = i
	}
	if written > hit {
		use.write = reported(upTo[written]) - use.read
	}
	if written1h > hit {
		use.write1h = reported(upTo[written1h]) - use.read
	}
	if len(list) > 0 {
		use.fresh = reported(upTo[len(list)-1]) - use.read - use.write
	}
	return use
}

// longestHit returns the last position whose prefix is cached and within reach of a marker, and renews it; -1
// if absent.
func (c *promptCache) longestHit(account string, list []position, now time.Time) int {
	for i := range slices.Backward(list) {
		if list[i].cache == nil {
			continue
		}
		for j := i; j >= 0 && j > i-lookback; j-- {
			if found := c.live(cacheKey{account, list[j].sum}, now); found != nil {
				found.expires = now.Add(found.ttl)
				return j
			}
		}
	}
	return -1
}

// usePrefix caches as OpenAI does: any prefix, in steps of 128 tokens from 1024. It keeps prefixes for life;
// if the model paysWrites, the rest of the prompt counts as written.
func (c *promptCache) usePrefix(account string, list []position, model Model, life time.Duration, now time.Time, reported func(int) int) cacheUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	upTo := cumulative(list)
	use := cacheUse{}
	for i, p := range list {
		key := cacheKey{account, p.sum}
		if c.live(key, now) != nil {
			use.read = reported(upTo[i])
		}
		c.put(key, life, now)
	}
	use.read -= use.read % openaiStep
	if use.read < model.MinCache {
		use.read = 0
	}
	if len(list) > 0 {
		use.fresh = reported(upTo[len(list)-1]) - use.read
	}
	if model.PaysWrites && use.read+use.fresh >= model.MinCache {
		use.write, use.fresh = use.fresh, 0
	}
	return use
}

func (c *promptCache) live(key cacheKey, now time.Time) *entry {
	found := c.entries[key]
	if found == nil || !now.Before(found.expires) {
		return nil
	}
	return found
}

func (c *promptCache) put(key cacheKey, ttl time.Duration, now time.Time) {
	if c.entries == nil {
		c.entries = map[cacheKey]*entry{}
	}
	if len(c.entries) >= cacheLimit {
		for stale, e := range c.entries {
			if !now.Before(e.expires) {
				delete(c.entries, stale)
			}
		}
	}
	c.entries[key] = &entry{expires: now.Add(ttl), ttl: ttl}
}

// cumulative returns the o200k tokens up to and including each position.
func cumulative(list []position) []int {
	sums := make([]int, len(list))
	sum := 0
	for i, p := range list {
		sum += p.tokens
		sums[i] = sum
	}
	return sums
}
