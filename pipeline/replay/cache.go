package replay

import (
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Piece is a part of a prompt in a provider's cache: everything before the conversation, or one
// message.
type Piece struct {
	Sum    conversation.Hash // of its bytes, without cache markers
	Tokens int
}

// Cache models a provider's prompt cache: a prefix of pieces is cached if any request sent it byte
// for byte within the time to live. The zero value is empty and never expires.
type Cache struct {
	TTL time.Duration // 0 if pieces never expire

	until map[conversation.Hash]time.Time // of each prefix that was sent
	last  conversation.Hash               // the whole previous prompt
	size  int                             // and the number of its pieces; 0 before the first prompt
}

// Use is a prompt's use of the cache. Its tokens are those of the pieces.
type Use struct {
	Read  int  // came from the cache
	Write int  // was new to it
	Bust  bool // the previous prompt is not a prefix of this one, even if it had expired
}

// Send sends a prompt at a time and returns its use of the cache. Times must not go back.
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

// usage returns a use as a provider reports it, each count times factor. It counts writes for an
// hour separately, and writes of an automatic cache as plain input.
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

// cost returns the cost of a use in millionths of a US dollar.
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
