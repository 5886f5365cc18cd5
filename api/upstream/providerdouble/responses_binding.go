package providerdouble

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// past continues a chain behind an item. Reasoning itself is not part of it.
func (c chain) past(i *responsesItem) chain {
	if i.kind == "reasoning" {
		return c
	}
	return c.with(i.kind, i.sum)
}

// head starts the chain of a request: its instructions and tools.
func (r *responsesRequest) head() chain {
	c := chain{}.with("instructions", sumText(r.instructions))
	for _, t := range r.tools {
		c = c.with("tool", t.sum)
	}
	return c
}

// seal returns the encrypted content of reasoning at the end of the request, bound to this place if the model
// leaves out displaced reasoning.
func (r *responsesRequest) seal(d *Double, text string) string {
	if !r.model.DropsReasoning {
		return d.Redact(text)
	}
	prefix := r.head()
	for _, i := range r.items {
		prefix = prefix.past(i)
	}
	return d.sealBound(text, prefix)
}

// dropReasoning marks reasoning whose prefix has changed: it is left out of the prompt, and the answer says
// so.
func (r *responsesRequest) dropReasoning(s *Signer) {
	if !r.model.DropsReasoning {
		return
	}
	prefix := r.head()
	for n, i := range r.items {
		if i.kind == "reasoning" && s.isMisplaced(i.sealed, prefix) {
			r.dropped = append(r.dropped, transformation{Type: "reasoning_dropped", Path: item("input", n-r.held), Reason: "prefix_mismatch"})
			r.skip[i] = true
		}
		prefix = prefix.past(i)
	}
}

// sealBound seals reasoning behind a prefix.
func (s *Signer) sealBound(text string, prefix chain) string {
	sum := sha256.Sum256([]byte(text))
	signed := append([]byte{boundSignature}, prefix[:chainSize]...)
	signed = append(signed, sum[:chainSize]...)
	return base64.StdEncoding.EncodeToString(append(signed, s.mac("reasoning", prefix[:chainSize], string(sum[:chainSize]))...))
}

// openBound returns the prefix that reasoning was sealed behind; ok is false for data of any other origin
// than sealBound.
func (s *Signer) openBound(data string) (prefix []byte, ok bool) {
	signed, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(signed) != 1+2*chainSize+sha256.Size || signed[0] != boundSignature {
		return nil, false
	}
	prefix, sum, mac := signed[1:1+chainSize], signed[1+chainSize:1+2*chainSize], signed[1+2*chainSize:]
	return prefix, hmac.Equal(mac, s.mac("reasoning", prefix, string(sum)))
}

func (s *Signer) isMisplaced(data string, prefix chain) bool {
	sealed, ok := s.openBound(data)
	return ok && !bytes.Equal(sealed, prefix[:chainSize])
}

// ItemBinding seals the reasoning of one conversation in Responses as it grows,
// each item bound to everything before it, as the newest models do.
type ItemBinding struct {
	signer *Signer
	reader *responsesReader
	chain  chain
}

// BindItems starts the binding of a conversation. head is a Responses body whose
// instructions and tools count; its input does not.
func (d *Double) BindItems(head []byte) (*ItemBinding, error) {
	m, ok := document(head)
	if !ok {
		return nil, brokenJSON()
	}
	r := &responsesRequest{members: m}
	r.instructions, _ = m.text("instructions")
	var rejection *Rejection
	if r.tools, rejection = d.config.parseFunctions(m["tools"], false); rejection != nil {
		return nil, rejection
	}
	return &ItemBinding{signer: d.Signer, reader: &d.responses, chain: r.head()}, nil
}

// Add appends one item to the conversation. Reasoning may be left out; role is the item's own.
func (b *ItemBinding) Add(_ string, content json.RawMessage) error {
	parsed, rejection := b.reader.parseItem(content, "input")
	if rejection != nil {
		return rejection
	}
	b.chain = b.chain.past(parsed)
	return nil
}

// Sign returns the encrypted content of reasoning at the end of the items so far.
func (b *ItemBinding) Sign(text string) string { return b.signer.sealBound(text, b.chain) }

// Redact is Sign, because reasoning is always sealed.
func (b *ItemBinding) Redact(text string) string { return b.Sign(text) }
