package pipeline

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"palimpsest/pipeline/conversation"
)

// Redact replaces personal data in a message before it is stored. It returns the message, and the number of
// replaced pieces by kind; raw itself without any. It must be deterministic and idempotent.
type Redact func(raw []byte) (redacted []byte, found map[string]int)

// keptMessages are the storable forms of a body's messages. They are safe for concurrent use.
type keptMessages struct {
	redact Redact

	mu   sync.Mutex
	made map[int]keptMessage
}

type keptMessage struct {
	raw   json.RawMessage
	found map[string]int
}

// KeepRedacted makes the exchange redact stored messages and those that modules read. The client's prompt to
// its provider stays unredacted.
func (e *Exchange) KeepRedacted(redact Redact) {
	e.kept = &keptMessages{redact: redact, made: make(map[int]keptMessage)}
}

// Redacts reports whether messages are redacted before they are stored.
func (c *Conversation) Redacts() bool { return c.kept != nil }

// Kept returns message i in its storable form, and the number of replaced pieces of personal data by kind.
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

// KeptHash returns the archive's hash of message i.
func (c *Conversation) KeptHash(i int) conversation.Hash {
	if raw, found := c.Kept(i); len(found) > 0 {
		return sha256.Sum256(raw)
	}
	return c.Digests[i].Sum
}

// IsRedacted reports whether personal data in message i must be replaced before it is stored.
func (c *Conversation) IsRedacted(i int) bool {
	_, found := c.Kept(i)
	return len(found) > 0
}

// readable returns message i in the form that modules may read. Messages that load tools stay unredacted,
// because modules put them back verbatim together with the reasoning before them, if that is a separate item.
func (c *Conversation) readable(i int) json.RawMessage {
	flags := c.Digests[i].Flags
	if flags.Has(conversation.LoadsTools) || flags.Has(conversation.HasThinking) && flags.Has(conversation.IsPart) {
		return c.body.Element(i)
	}
	raw, _ := c.Kept(i)
	return raw
}

// sendable returns message i in the form that a prompt may hold, and that may be stored with it. Signed or
// opaque content stays unredacted, because providers reject changes to it.
func (c *Conversation) sendable(i int) json.RawMessage {
	const asItCame = conversation.HasThinking | conversation.HasOpaque | conversation.IsPinned | conversation.LoadsTools
	if c.Digests[i].Flags.Has(asItCame) {
		return c.body.Element(i)
	}
	raw, _ := c.Kept(i)
	return raw
}
