package providerdouble

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"sync"
)

// The first byte of a signature says which data it covers.
const (
	plainSignature = 1 // the thinking's text
	boundSignature = 2 // its text and everything before it
)

const (
	chainSize = 16 // bytes of a prefix hash inside a signature
	taggedID  = "toolu_T1"
	plainID   = "toolu_01"
	tagSize   = 8
)

// Signer signs thinking as one provider and recognizes its signatures. It only stores the inputs of Trust,
// because a signature proves itself.
type Signer struct {
	secret []byte

	mu      sync.Mutex
	trusted map[[sha256.Size]byte]bool // thinking of recorded bodies
	loops   map[string]string          // call id of a recorded body → tag of its message's thinking
	led     map[string]string          // item of a recorded body → the reasoning that led to it
}

// NewSigner returns the signer of the doubles that share a secret; "" means the default of Config.
func NewSigner(secret []byte) *Signer {
	if len(secret) == 0 {
		secret = Config{}.withDefaults().Secret
	}
	return &Signer{secret: secret, trusted: map[[sha256.Size]byte]bool{}, loops: map[string]string{}, led: map[string]string{}}
}

// Sign returns the signature of a thinking block with this text, independent of its prefix.
func (s *Signer) Sign(text string) string {
	return base64.StdEncoding.EncodeToString(append([]byte{plainSignature}, s.mac("thinking", nil, text)...))
}

// Redact returns the data of a redacted_thinking block that hides this text, or
// the encrypted_content of a reasoning item.
func (s *Signer) Redact(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(append(sum[:chainSize], s.mac("redacted", nil, string(sum[:chainSize]))...))
}

// CallID returns an id for a tool call, the same for the same seed. It carries a tag of the signatures of the
// thinking in its message, so that missing thinking is noticed later.
func (s *Signer) CallID(seed string, signatures []string) string {
	name := base62(sha256.Sum256([]byte(seed)), 22)
	if len(signatures) == 0 {
		return plainID + name
	}
	return taggedID + tagOf(signatures) + name[:22-tagSize]
}

// ItemID returns the id of an item of Responses, the same for the same seed. prefix is "fc_", "ctc_" or
// "msg_"; reasoning is the id of the reasoning item that led to it, which must then accompany it, or "".
func (s *Signer) ItemID(prefix, seed, reasoning string) string {
	name := base62(sha256.Sum256([]byte(seed)), 24)
	if reasoning == "" {
		return prefix + name
	}
	return prefix + "R" + strings.TrimPrefix(reasoning, "rs_") + "R" + name[:6]
}

// ReasoningID returns the id of a reasoning item, the same for the same seed.
func (s *Signer) ReasoningID(seed string) string {
	return "rs_" + base62(sha256.Sum256([]byte(seed)), 24)
}

// reasoningOf returns the reasoning that must accompany an item.
func (s *Signer) reasoningOf(id string) (string, bool) {
	if _, rest, ok := strings.Cut(id, "_R"); ok && len(rest) == 24+1+6 && rest[24] == 'R' {
		return "rs_" + rest[:24], true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reasoning, ok := s.led[id]
	return reasoning, ok
}

// Trust accepts the thinking of a recorded Anthropic or Responses body as if it had been signed here, and
// remembers the calls that it belongs to.
func (s *Signer) Trust(body []byte) {
	if !mayHoldThinking(body) {
		return
	}
	m, _ := document(body)
	for _, list := range []json.RawMessage{m["messages"], m["input"]} {
		messages, _ := elements(list)
		reasoning := ""
		for _, raw := range messages {
			s.trustMessage(raw)
			reasoning = s.trustItem(raw, reasoning)
		}
	}
}

// mayHoldThinking reports whether a body may hold thinking, reasoning, or a reference to it.
func mayHoldThinking(body []byte) bool {
	for _, word := range []string{"thinking", "reasoning", "encrypted_content", "item_reference"} {
		if bytes.Contains(body, []byte(word)) {
			return true
		}
	}
	return false
}

// trustItem notes which reasoning an item of Responses belongs to, and returns
// the reasoning that the next item belongs to.
func (s *Signer) trustItem(raw json.RawMessage, reasoning string) string {
	m, _ := objectMembers(raw)
	id, _ := m.text("id")
	kind, _ := m.text("type")
	role, _ := m.text("role")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case kind == "reasoning":
		s.trusted[trustKey("item", id)] = true
		return id
	case kind == "item_reference":
		s.trusted[trustKey("item", id)] = true
	case strings.HasSuffix(kind, "_call_output"), role == "user":
		return ""
	case id != "" && reasoning != "":
		s.led[id] = reasoning
	}
	return reasoning
}

func (s *Signer) trustMessage(raw json.RawMessage) {
	m, _ := objectMembers(raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sealed, ok := m.text("encrypted_content"); ok {
		s.trusted[trustKey("", sealed)] = true
	}
	blocks, _ := elements(m["content"])
	var signatures, calls []string
	for _, element := range blocks {
		b, _ := objectMembers(element)
		switch kind, _ := b.text("type"); kind {
		case "thinking":
			text, _ := b.text("thinking")
			signature, _ := b.text("signature")
			s.trusted[trustKey(text, signature)] = true
			signatures = append(signatures, signature)
		case "redacted_thinking":
			data, _ := b.text("data")
			s.trusted[trustKey("", data)] = true
			signatures = append(signatures, data)
		case "tool_use":
			id, _ := b.text("id")
			calls = append(calls, id)
		}
	}
	if len(signatures) > 0 {
		for _, id := range calls {
			s.loops[id] = tagOf(signatures)
		}
	}
}

func trustKey(text, signature string) [sha256.Size]byte {
	return sha256.Sum256([]byte(signature + "\x00" + text))
}

// signBound signs thinking behind a prefix; before is the signature of the
// thinking block before it, if there is one.
func (s *Signer) signBound(text string, prefix chain, before string) string {
	binding := bindingOf(prefix, before)
	signed := append([]byte{boundSignature}, binding...)
	return base64.StdEncoding.EncodeToString(append(signed, s.mac("thinking", binding, text)...))
}

func bindingOf(prefix chain, before string) []byte {
	last := sha256.Sum256([]byte(before))
	return append(bytes.Clone(prefix[:chainSize]), last[:chainSize]...)
}

// verdict is the judgment on a thinking block.
type verdict int

const (
	genuine verdict = iota
	tampered
	misplaced // genuine, but signed for another prefix
)

// judge checks a block against its signature. first says that it is the first thinking; otherwise before is
// the signature of the thinking before it.
func (s *Signer) judge(b *block, prefix chain, before string, first bool) verdict {
	if b.kind == "redacted_thinking" {
		return s.judgeRedacted(b.signature, prefix, before, first)
	}
	if s.isTrusted(b.text, b.signature) {
		return genuine
	}
	signed, err := base64.StdEncoding.DecodeString(b.signature)
	if err != nil || len(signed) == 0 {
		return tampered
	}
	switch signed[0] {
	case plainSignature:
		if hmac.Equal(signed[1:], s.mac("thinking", nil, b.text)) {
			return genuine
		}
	case boundSignature:
		if len(signed) != 1+2*chainSize+sha256.Size {
			return tampered
		}
		binding, mac := signed[1:1+2*chainSize], signed[1+2*chainSize:]
		if !hmac.Equal(mac, s.mac("thinking", binding, b.text)) {
			return tampered
		}
		want := bindingOf(prefix, before)
		if !bytes.Equal(binding[:chainSize], want[:chainSize]) || !first && !bytes.Equal(binding, want) {
			return misplaced
		}
		return genuine
	}
	return tampered
}

// judgeRedacted checks hidden thinking, bound or not.
func (s *Signer) judgeRedacted(data string, prefix chain, before string, first bool) verdict {
	hidden, err := base64.StdEncoding.DecodeString(data)
	const bound = 1 + 2*chainSize + chainSize + sha256.Size
	if err != nil || len(hidden) != bound || hidden[0] != boundSignature {
		return s.judgeSealed(data)
	}
	binding, sum, mac := hidden[1:1+2*chainSize], hidden[1+2*chainSize:1+3*chainSize], hidden[1+3*chainSize:]
	if !hmac.Equal(mac, s.mac("redacted", binding, string(sum))) {
		return tampered
	}
	want := bindingOf(prefix, before)
	if !bytes.Equal(binding[:chainSize], want[:chainSize]) || !first && !bytes.Equal(binding, want) {
		return misplaced
	}
	return genuine
}

// redactBound hides thinking behind a prefix; before is the signature of the
// thinking block before it, if there is one.
func (s *Signer) redactBound(text string, prefix chain, before string) string {
	binding := bindingOf(prefix, before)
	sum := sha256.Sum256([]byte(text))
	hidden := append(append([]byte{boundSignature}, binding...), sum[:chainSize]...)
	return base64.StdEncoding.EncodeToString(append(hidden, s.mac("redacted", binding, string(sum[:chainSize]))...))
}

// judgeSealed checks redacted thinking and encrypted reasoning.
func (s *Signer) judgeSealed(data string) verdict {
	if s.isTrusted("", data) {
		return genuine
	}
	sealed, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(sealed) != chainSize+sha256.Size {
		return tampered
	}
	if !hmac.Equal(sealed[chainSize:], s.mac("redacted", nil, string(sealed[:chainSize]))) {
		return tampered
	}
	return genuine
}

func (s *Signer) isTrusted(text, signature string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trusted[trustKey(text, signature)]
}

// loopTag returns the tag of the thinking in a call's message.
func (s *Signer) loopTag(id string) (string, bool) {
	if rest, ok := strings.CutPrefix(id, taggedID); ok && len(rest) > tagSize {
		return rest[:tagSize], true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tag, ok := s.loops[id]
	return tag, ok
}

func (s *Signer) mac(purpose string, binding []byte, text string) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(purpose + "\x00"))
	mac.Write(binding)
	mac.Write([]byte("\x00" + text))
	return mac.Sum(nil)
}

func tagOf(signatures []string) string {
	return base62(sha256.Sum256([]byte(strings.Join(signatures, "\x00"))), tagSize)
}

// base62 writes the first digits of a sum with letters and digits.
func base62(sum [sha256.Size]byte, digits int) string {
	text := new(big.Int).SetBytes(sum[:]).Text(62)
	return strings.Repeat("0", max(0, digits-len(text))) + text[:min(digits, len(text))]
}
