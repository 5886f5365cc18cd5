package replay

import (
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// cache models a provider's prompt cache that never expires and holds what one
// conversation sent last.
type cache struct {
	sent  []conversation.Hash
	share float64 // of the last prompt's tokens that came from the cache
	bust  bool    // the prompt before was no prefix of the last one
}

// send returns the usage of a prompt, in o200k tokens.
func (c *cache) send(fixed int, messages []conversation.Digest) wire.Usage {
	usage := wire.Usage{Reported: true}
	first := c.sent == nil
	if first {
		usage.CacheWrite = fixed
	} else {
		usage.CacheRead = fixed
	}
	hashes := make([]conversation.Hash, len(messages))
	same := !first
	shared := 0
	for i, message := range messages {
		hashes[i] = message.Identity // a moved cache marker is no change
		if same = same && i < len(c.sent) && c.sent[i] == hashes[i]; same {
			usage.CacheRead += message.Tokens
			shared++
			continue
		}
		usage.CacheWrite += message.Tokens
	}
	c.bust = !first && shared < len(c.sent)
	c.sent = hashes
	c.share = 0
	if whole := usage.Prompt(); whole > 0 {
		c.share = float64(usage.CacheRead) / float64(whole)
	}
	return usage
}
