package pipeline

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"palimpsest/pipeline/conversation"
)

// Redact replaces personal data in a message before it is stored. It returns raw itself without any,
// and how many pieces of each kind there were. The same message has the same result, and so has that
// result.
type Redact func(raw []byte) (redacted []byte, found map[string]int)

// keptMessages are the messages of a body as they may be stored. They are safe for concurrent use.
type keptMessages struct {
	redact Redact

	mu   sync.Mutex
	made map[int]keptMessage
}

type keptMessage struct {
	raw   json.RawMessage
	found map[string]int
}

// KeepRedacted has what is stored of the exchange, and what modules read of it, redacted. What the client
// sends to its provider stays.
func (e *Exchange) KeepRedacted(redact Redact) {
	e.kept = &keptMessages{redact: redact, made: make(map[int]keptMessage)}
}

// Redacts reports whether messages are redacted before they are stored.
func (c *Conversation) Redacts() bool { return c.kept != nil }

// Kept returns message i as it may be stored, and how many pieces of each kind of personal data were
// replaced in it.
func (c *Conversation) Kept(i int) (raw json.RawMessage, found map[string]int) {
	if c.kept == nil {
		return c.body.Element(i), nil
	}
	c.kept.mu.Lock()
	made, known := c.kept.made[i]
	c.kept.mu.Unlock()
	if !known {
		made.raw, made.found = c.kept.redact(c.body.Element(i))
		c.kept.mu.Lock()
		c.kept.made[i] = made
		c.kept.mu.Unlock()
	}
	return made.raw, made.found
}

// KeptHash returns the hash under which the archive has message i.
func (c *Conversation) KeptHash(i int) conversation.Hash {
	if raw, found := c.Kept(i); len(found) > 0 {
		return sha256.Sum256(raw)
	}
	return c.Digests[i].Sum
}

// IsRedacted reports whether message i may only be stored with personal data replaced.
func (c *Conversation) IsRedacted(i int) bool {
	_, found := c.Kept(i)
	return len(found) > 0
}

// readable returns message i as modules may read it. What makes tools known they put back as it came,
// with the reasoning that led to it where that is an item of its own.
func (c *Conversation) readable(i int) json.RawMessage {
	flags := c.Digests[i].Flags
	if flags.Has(conversation.LoadsTools) || flags.Has(conversation.HasThinking) && flags.Has(conversation.IsPart) {
		return c.body.Element(i)
	}
	raw, _ := c.Kept(i)
	return raw
}

// sendable returns message i as it can stand in a prompt and may be stored with that. Providers refuse
// what they have signed and what they alone can read if it was changed.
func (c *Conversation) sendable(i int) json.RawMessage {
	const asItCame = conversation.HasThinking | conversation.HasOpaque | conversation.IsPinned | conversation.LoadsTools
	if c.Digests[i].Flags.Has(asItCame) {
		return c.body.Element(i)
	}
	raw, _ := c.Kept(i)
	return raw
}
