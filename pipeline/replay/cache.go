package replay

import (
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Piece is a stretch of a prompt as a provider's cache sees it: what precedes the
// conversation, or one message.
type Piece struct {
	Sum    conversation.Hash // of its bytes, without cache markers
	Tokens int
}

// Cache models a provider's prompt cache: a prefix of pieces is cached if it was
// sent byte for byte within the time to live, by whichever request. The zero value
// is empty and forgets nothing.
type Cache struct {
	TTL time.Duration // 0 if nothing expires

	until map[conversation.Hash]time.Time // of each prefix that was sent
	last  conversation.Hash               // all of the prompt before
	size  int                             // and the number of its pieces; 0 if it was never written
}

// Use is how a prompt met the cache. Its tokens are those of the pieces.
type Use struct {
	Read  int  // came from the cache
	Write int  // was new to it
	Bust  bool // the prompt before is no prefix of this one, whether or not it had expired
}

// Send sends a prompt at a time and returns how it met the cache. Times must not
// go back.
func (c *Cache) Send(now time.Time, prompt []Piece) Use {
	if c.until == nil {
		c.until = make(map[conversation.Hash]time.Time)
	}
	use := Use{Bust: c.size > 0}
	var prefix conversation.Hash
	isCached := true
	for i, piece := range prompt {
		prefix = conversation.Extend(prefix, piece.Sum)
		until, known := c.until[prefix]
		isCached = isCached && known && (c.TTL == 0 || now.Before(until))
		if isCached {
			use.Read += piece.Tokens
		} else {
			use.Write += piece.Tokens
		}
		if i+1 == c.size && prefix == c.last {
			use.Bust = false
		}
		c.until[prefix] = now.Add(c.TTL)
	}
	c.last, c.size = prefix, len(prompt)
	return use
}

// usage returns a use as a provider reports it, each count times factor: what was kept for
// an hour apart, and what an automatic cache took in as plain input.
func (c Config) usage(use Use, factor float64) wire.Usage {
	usage := wire.Usage{Reported: true, CacheRead: scale(use.Read, factor)}
	written := scale(use.Write, factor)
	switch {
	case c.Automatic:
		usage.Input = written
	case c.TTL == session.LongTTL:
		usage.CacheWrite, usage.CacheWrite1h = written, written
	default:
		usage.CacheWrite = written
	}
	return usage
}

// cost returns what a use costs in millionths of a US dollar.
func (c Config) cost(use Use, price tokens.Price) int64 {
	usage := c.usage(use, 1)
	return price.MicroUSD(usage.Input, usage.CacheRead, usage.CacheWrite-usage.CacheWrite1h, usage.CacheWrite1h, 0)
}

// share returns the share of the prompt's tokens that came from the cache.
func (u Use) share() float64 {
	whole := u.Read + u.Write
	if whole == 0 {
		return 0
	}
	return float64(u.Read) / float64(whole)
}
