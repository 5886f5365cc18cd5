package sessiontest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Options say what a session is like. The zero value is a session of 40 turns in
// Anthropic's format, one tool call at a time, text only.
type Options struct {
	Format conversation.Format
	Model  string // empty picks one that fits the format
	Turns  int    // answers of the assistant, each asked for by one request; 0 is 40

	Parallel    bool // two to four calls in some answers
	Thinking    bool // signed thinking, or encrypted reasoning
	Images      bool // pictures in typed messages and, where the format can, in results
	CJK         bool // Chinese, Japanese, Korean and emoji among the rest
	HugeResults bool // a result of 80 to 160 KB now and then
	ToolErrors  bool // calls that fail
	Reminders   bool // <system-reminder> blocks beside what was typed and behind results

	// Varied adds blocks, items and messages of every kind that the format has,
	// here and there. Some answers then take two requests.
	Varied bool

	// ThinkingSetting is the body's thinking member in Anthropic's format, as JSON;
	// empty picks one that fits the model, "none" leaves it out.
	ThinkingSetting string

	// CacheMarkers sets Anthropic's cache markers where Claude Code sets them: on
	// the second and third system block and on the last block.
	CacheMarkers bool

	// TargetTokens is about how many o200k tokens the last body has, huge
	// results, pictures and thinking included; 0 lets each result be about 1,500 bytes.
	TargetTokens int

	// HeadTokens is about how many o200k tokens stand before the conversation; 0
	// is as many as a short system prompt and the tools take.
	HeadTokens int

	// Facts plants texts that nothing else holds in what is typed, said, called
	// and returned, and has later turns come back to each: see Session.Facts.
	Facts bool

	// Stream sets the body's stream member.
	Stream bool

	// SessionID names the session where the format has a place for it.
	SessionID string

	// Signer signs thinking and names calls; nil makes signatures that look
	// right and that no provider issued.
	Signer Signer

	// Bind returns a signer of thinking that is bound to what stands before it,
	// for a session that begins with head; nil leaves thinking unbound. Chat
	// knows no thinking that could be bound.
	Bind func(head []byte) (Binder, error)
}

// Signer does what only a provider can do. The provider double is one.
type Signer interface {
	// Sign returns the signature of thinking.
	Sign(text string) string

	// Redact returns encrypted content that stands for a text.
	Redact(text string) string

	// CallID names a tool call beside thinking with these signatures.
	CallID(seed string, signatures []string) string

	// ItemID names an item of Responses that a reasoning item led to, if any.
	ItemID(prefix, seed, reasoning string) string

	// ReasoningID names a reasoning item.
	ReasoningID(seed string) string
}

// Binder signs and seals thinking bound to the conversation that was added so far.
type Binder interface {
	// Add adds a block of a message of Anthropic's, or an item of Responses.
	Add(role string, content json.RawMessage) error
	Sign(text string) string
	Redact(text string) string
}

func (o Options) withDefaults() Options {
	if o.Format == "" {
		o.Format = conversation.Anthropic
	}
	if o.Turns == 0 {
		o.Turns = 40
	}
	if o.Signer == nil {
		o.Signer = nobody{}
	}
	if o.Model != "" {
		return o
	}
	switch o.Format {
	case conversation.OpenAIChat:
		o.Model = "gpt-4.1"
	case conversation.OpenAIResponses:
		o.Model = "gpt-5.1-codex"
	default:
		o.Model = "claude-sonnet-4-5"
	}
	return o
}

// adapts reports whether the model decides itself how long it thinks.
func (o Options) adapts() bool {
	for _, older := range []string{"-3-", "-4-0", "-4-1", "-4-5", "-4-2025"} {
		if strings.Contains(o.Model, older) {
			return false
		}
	}
	return true
}

// nobody signs for no provider.
type nobody struct{}

func (nobody) Sign(text string) string {
	return base64.StdEncoding.EncodeToString([]byte("signed:" + text[:min(len(text), 60)]))
}

func (nobody) Redact(text string) string {
	return base64.StdEncoding.EncodeToString([]byte("sealed:" + text))
}

func (nobody) CallID(seed string, _ []string) string { return "toolu_01" + number(seed) }

func (nobody) ItemID(prefix, seed, _ string) string { return prefix + number(seed) }

func (nobody) ReasoningID(seed string) string { return "rs_" + number(seed) }

func number(seed string) string {
	sum := uint64(14695981039346656037)
	for _, letter := range []byte(seed) {
		sum = (sum ^ uint64(letter)) * 1099511628211
	}
	return fmt.Sprintf("%016x", sum)
}

var _ Signer = nobody{}
