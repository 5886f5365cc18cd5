package sessiontest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Options describe a session. The zero value is a session of 40 turns in Anthropic's format, one tool call at
// a time, text only.
type Options struct {
	Format conversation.Format
	Model  string // "" picks one for the format
	Turns  int    // answers of the assistant, one per request; 0 means 40

	Parallel    bool // two to four calls in some answers
	Thinking    bool // signed thinking, or encrypted reasoning
	Images      bool // pictures in typed messages and, if the format allows it, in results
	CJK         bool // some Chinese, Japanese, Korean and emoji
	HugeResults bool // occasional results of 80 to 160 KB
	ToolErrors  bool // failing calls
	Reminders   bool // <system-reminder> blocks next to typed text and after results

	// Varied occasionally adds blocks, items and messages of every kind in the format. Some answers then take
	// two requests.
	Varied bool

	// ThinkingSetting is the body's thinking member in Anthropic's format, as JSON; "" picks one for the
	// model, "none" omits it.
	ThinkingSetting string

	// CacheMarkers sets Anthropic's cache markers in the same places as Claude Code: on the second and third
	// system block and on the last block.
	CacheMarkers bool

	// TargetTokens is the approximate size of the last body in o200k tokens, including huge results, pictures
	// and thinking; 0 makes each result about 1,500 bytes.
	TargetTokens int

	// HeadTokens is the approximate number of o200k tokens before the conversation; 0 means a short system
	// prompt and the tools.
	HeadTokens int

	// Facts plants unique texts in typed messages, answers, calls and results, and makes later turns use each
	// again: see Session.Facts.
	Facts bool

	// Stream sets the body's stream member.
	Stream bool

	// SessionID names the session if the format supports it.
	SessionID string

	// Signer signs thinking and names calls; nil makes plausible signatures that no provider issued.
	Signer Signer

	// Bind returns a signer for thinking bound to the content before it, in a session that begins with head;
	// nil leaves thinking unbound. Chat has no thinking that could be bound.
	Bind func(head []byte) (Binder, error)
}

// Signer does work that only a provider can do. The provider double implements it.
type Signer interface {
	// Sign returns the signature of thinking.
	Sign(text string) string

	// Redact returns encrypted content for a text.
	Redact(text string) string

	// CallID returns the id of a tool call next to thinking with these signatures.
	CallID(seed string, signatures []string) string

	// ItemID returns the id of an item of Responses. reasoning is the item before it, if any.
	ItemID(prefix, seed, reasoning string) string

	// ReasoningID returns the id of a reasoning item.
	ReasoningID(seed string) string
}

// Binder signs and seals thinking bound to the conversation added so far.
type Binder interface {
	// Add adds a block of an Anthropic message, or an item of Responses.
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
	case conversation.Gemini, conversation.GeminiInteractions:
		o.Model = "gemini-3-pro-preview"
	default:
		o.Model = "claude-sonnet-4-5"
	}
	return o
}

// adapts reports whether the model itself decides how long it thinks.
func (o Options) adapts() bool {
	for _, older := range []string{"-3-", "-4-0", "-4-1", "-4-5", "-4-2025"} {
		if strings.Contains(o.Model, older) {
			return false
		}
	}
	return true
}

// nobody implements Signer with plausible signatures that no provider issued.
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
