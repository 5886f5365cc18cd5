package providerdouble

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// transformation is one entry of input_transformations.
type transformation struct {
	Type   string `json:"type"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// checkThinking judges every returned thinking block.
func (a *anthropicReader) checkThinking(r *anthropicRequest) *Rejection {
	if rejection := a.checkSignatures(r); rejection != nil {
		return rejection
	}
	if !r.active() {
		return nil
	}
	switch r.model.Thinking {
	case ThinkingFirst:
		if rejection := checkLoopOpens(r); rejection != nil {
			return rejection
		}
		return a.checkLoopWhole(r)
	case ThinkingWhole:
		return a.checkLoopWhole(r)
	default:
		return nil
	}
}

// checkSignatures refuses tampered thinking, and thinking behind another prefix if the model binds it. It
// marks the blocks to drop on request.
func (a *anthropicReader) checkSignatures(r *anthropicRequest) *Rejection {
	enforced := r.model.Thinking == ThinkingBound && (a.config.BindThinking || r.thinking.bound)
	var prefix chain
	if enforced {
		prefix = r.head()
	}
	before, first := "", true
	for i, m := range r.messages {
		for j, b := range m.blocks {
			if !b.isThinking() {
				if enforced {
					prefix = prefix.with(m.role, b.meaning())
				}
				continue
			}
			path := fmt.Sprintf("messages.%d.content.%d", i, j)
			switch a.signer.judge(b, prefix, before, first) {
			case tampered:
				return refuse("%s: Invalid `%s` in `%s` block", path, signatureMember(b), b.kind)
			case misplaced:
				if !enforced {
					break
				}
				if r.thinking.binding != "drop_block" {
					return r.boundElsewhere(path)
				}
				r.dropped = append(r.dropped, transformation{Type: "thinking_dropped", Path: path, Reason: "prefix_binding_mismatch"})
				r.skip[b] = true
			case genuine:
			}
			before, first = b.signature, false
		}
	}
	return nil
}

func signatureMember(b *block) string {
	if b.kind == "redacted_thinking" {
		return "data"
	}
	return "signature"
}

func (r *anthropicRequest) boundElsewhere(path string) *Rejection {
	text := path + ": Invalid `signature` in `thinking` block. The block is bound to a different conversation. " +
		"Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
	if r.header != nil && !hasBeta(r.header, bindingBeta) {
		text += " That setting requires the `" + bindingBeta + "` value in the `anthropic-beta` header."
	}
	return refuse("%s", text)
}

// checkLoopOpens requires that the running tool loop starts with thinking.
func checkLoopOpens(r *anthropicRequest) *Rejection {
	start := r.loopStart()
	if start >= len(r.messages) || r.messages[start].role != "assistant" || !r.messages[start].has("tool_use") {
		return nil
	}
	if opening := r.messages[start].blocks[0]; !opening.isThinking() {
		return refuse("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
			start, opening.kind)
	}
	return nil
}

// checkLoopWhole requires that each answer of the running tool loop has all of its original thinking.
func (a *anthropicReader) checkLoopWhole(r *anthropicRequest) *Rejection {
	for i := r.loopStart(); i < len(r.messages); i++ {
		m := r.messages[i]
		for _, b := range m.blocks {
			tag, known := "", false
			if b.kind == "tool_use" {
				tag, known = a.signer.loopTag(b.id)
			}
			if known && tag != tagOf(signaturesOf(m)) {
				return refuse("messages.%d.content.%d: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.",
					i, firstThinking(m))
			}
		}
	}
	return nil
}

func signaturesOf(m *message) []string {
	var signatures []string
	for _, b := range m.blocks {
		if b.isThinking() {
			signatures = append(signatures, b.signature)
		}
	}
	return signatures
}

func firstThinking(m *message) int {
	for j, b := range m.blocks {
		if b.isThinking() {
			return j
		}
	}
	return 0
}

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
