package providerdouble

import (
	"crypto/sha256"
	"encoding/json"
)

// chain is a running hash of the prefix of a thinking block: system, tools and the blocks of earlier
// messages, independent of the order of their keys, their cache markers and the borders between messages of
// one role. Thinking itself is not part of it.
type chain [sha256.Size]byte

func (c chain) with(label string, sum [sha256.Size]byte) chain {
	joined := append(append(append([]byte{}, c[:]...), label...), 0)
	return sha256.Sum256(append(joined, sum[:]...))
}

// head starts the chain of a request.
func (r *anthropicRequest) head() chain {
	var c chain
	for _, b := range r.system {
		c = c.with("system", b.meaning())
	}
	for _, t := range r.tools {
		m, _ := objectMembers(t.raw)
		if !m.flag("defer_loading") {
			c = c.with("tool", sha256.Sum256(canonical(unmarked(t.raw, ""))))
		}
	}
	return c
}

// meaning is the sum of a block, independent of cache markers and the order of keys.
func (b *block) meaning() [sha256.Size]byte {
	if b.kind == "text" && b.members.extra("type", "text", "cache_control") == "" {
		return b.sum
	}
	b.once.Do(func() { b.canonical = sha256.Sum256(canonical(unmarked(b.raw, b.kind))) })
	return b.canonical
}

// Binding signs the thinking of one conversation as it grows, each block bound to everything before it, as
// the newest models do. A generator of sessions adds all its messages in order.
type Binding struct {
	signer *Signer
	reader *anthropicReader
	chain  chain
	before string
}

// Bind starts the binding of a conversation. head is an Anthropic body whose
// system and tools count; its messages do not.
func (d *Double) Bind(head []byte) (*Binding, error) {
	m, ok := document(head)
	if !ok {
		return nil, refuse("The request body is not valid JSON: expected a JSON object")
	}
	r := &anthropicRequest{members: m}
	if rejection := d.anthropic.parseTools(r); rejection != nil {
		return nil, rejection
	}
	if m.has("system") {
		blocks, rejection := d.anthropic.parseContent(m["system"], "system", "system")
		if rejection != nil {
			return nil, rejection
		}
		r.system = blocks
	}
	return &Binding{signer: d.Signer, reader: &d.anthropic, chain: r.head()}, nil
}

// Add appends one block to the conversation. Thinking blocks may be left out.
func (b *Binding) Add(role string, content json.RawMessage) error {
	parsed, rejection := b.reader.parseBlock(content, role, "content")
	if rejection != nil {
		return rejection
	}
	b.add(role, parsed)
	return nil
}

func (b *Binding) add(role string, content *block) {
	if !content.isThinking() {
		b.chain = b.chain.with(role, content.meaning())
	}
}

// Redact hides a thinking block at the end of the prefix so far.
func (b *Binding) Redact(text string) string {
	b.before = b.signer.redactBound(text, b.chain, b.before)
	return b.before
}

// Sign signs a thinking block at the end of the prefix so far.
func (b *Binding) Sign(text string) string {
	b.before = b.signer.signBound(text, b.chain, b.before)
	return b.before
}
