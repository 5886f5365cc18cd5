package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Conversation holds the messages of a request. Modules read and write messages through it, because they have
// access neither to the body's bytes nor to its wire format.
type Conversation struct {
	Digests []conversation.Digest
	Turns   []conversation.Turn
	Chain   []conversation.Hash // Chain[i] is the link after i messages

	codec wire.Codec
	body  *wire.Envelope
	large *largeMessages // optional; nil parses messages each time
	kept  *keptMessages  // optional; nil allows storing messages unredacted
}

// NewConversation returns the conversation of a body. digests are those of its messages. The caller sets
// Chain once the session is known.
func NewConversation(codec wire.Codec, body *wire.Envelope, digests []conversation.Digest) Conversation {
	return Conversation{Digests: digests, Turns: conversation.Turns(digests), codec: codec, body: body}
}

// First returns the conversation with only the first messages.
func (c *Conversation) First(messages int) Conversation {
	first := *c
	first.Digests, first.Chain = c.Digests[:messages], c.Chain[:messages+1]
	first.Turns = conversation.Turns(first.Digests)
	return first
}

// Message reads message i in the form that may be stored, because the output of modules is stored too.
func (c *Conversation) Message(i int) (conversation.Message, error) {
	raw := c.readable(i)
	parse := func() (conversation.Message, error) { return c.codec.Parse(raw) }
	if c.large != nil && len(raw) >= largeMessage {
		parse = func() (conversation.Message, error) { return c.large.message(i, raw, c.codec) }
	}
	message, err := parse()
	if err != nil {
		return conversation.Message{}, fmt.Errorf("message %d: %w", i, err)
	}
	return message, nil
}

// Length returns how many bytes message i has.
func (c *Conversation) Length(i int) int { return len(c.body.Element(i)) }

// BodyLength returns how many bytes the whole body has.
func (c *Conversation) BodyLength() int { return len(c.body.Body()) }

// Read parses a message in the conversation's format, from Write or from an earlier request of the client.
func (c *Conversation) Read(written json.RawMessage) (conversation.Message, error) {
	message, err := c.codec.Parse(written)
	if err != nil {
		return conversation.Message{}, fmt.Errorf("read message: %w", err)
	}
	return message, nil
}

// Write encodes a message as it appears in a body.
func (c *Conversation) Write(message conversation.Message) (json.RawMessage, error) {
	written, err := c.codec.Encode(message)
	if err != nil {
		return nil, fmt.Errorf("write message: %w", err)
	}
	return written, nil
}

// WriteUnmarked encodes a message without its cache markers: the client moves its markers on with each
// request, but those in a stored message would stay forever.
func (c *Conversation) WriteUnmarked(message conversation.Message) (json.RawMessage, error) {
	written, err := c.Write(message)
	if err != nil {
		return nil, err
	}
	return c.codec.Mark(written, ""), nil
}

// Unmarked returns message i as the client sent it, or as it may be stored, without its cache markers.
func (c *Conversation) Unmarked(i int) json.RawMessage { return c.codec.Mark(c.sendable(i), "") }

// WantedSummary returns the kind of summary that the request asks for, or the reason why only a model can
// write it.
func (c *Conversation) WantedSummary() (wanted client.Wanted, reason string) {
	return client.WantedSummary(c.body)
}

// WantsText reports whether the request asks only for text.
func (c *Conversation) WantsText() bool { return client.WantsText(c.body) }

// CanReply reports whether a module can write an answer in the wire format.
func (c *Conversation) CanReply() bool {
	_, can := c.codec.(wire.Answerer)
	return can
}

// Words are a text to search messages for, as it appears inside a JSON string of a body.
type Words []byte

// Quote returns the words of a text.
func Quote(text string) Words {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return Words(text) // unreachable: a string always encodes
	}
	return quoted.Bytes()[1 : quoted.Len()-2] // the quotation marks and a newline
}

// QuoteASCII returns the words of a text as written by clients that escape all letters outside ASCII.
func QuoteASCII(text string) Words {
	var words Words
	for _, unit := range utf16.Encode([]rune(string(Quote(text)))) {
		if unit < utf8.RuneSelf {
			words = utf8.AppendRune(words, rune(unit))
		} else {
			words = fmt.Appendf(words, `\u%04x`, unit)
		}
	}
	return words
}

// Holds reports whether message i holds words.
func (c *Conversation) Holds(i int, words Words) bool {
	return bytes.Contains(c.readable(i), words)
}

// HoldsLower reports which of the words, given in lowercase, occur in the messages from index from to to
// (excluded), ignoring case.
func (c *Conversation) HoldsLower(from, to int, words []Words) []bool {
	var low []byte
	for i := from; i < to; i++ {
		low = appendLower(low, c.readable(i))
	}
	holds := make([]bool, len(words))
	for i := range words {
		holds[i] = words[i] != nil && bytes.Contains(low, words[i])
	}
	return holds
}

// Has reports whether the request contains a message from another source.
func (c *Conversation) Has(message *conversation.Message) bool {
	if len(message.Raw) == 0 || c.kept == nil {
		return len(message.Raw) > 0 && bytes.Contains(c.body.Body(), message.Raw)
	}
	for i := range c.Digests {
		if raw, _ := c.Kept(i); bytes.Equal(raw, message.Raw) {
			return true
		}
	}
	return false
}

// takes reports whether text can be appended to message i.
func (c *Conversation) takes(i int, text string) bool {
	_, err := c.codec.Append(c.body.Element(i), text)
	return err == nil
}

// appendLower appends a text in lowercase. Nearly all of a prompt is ASCII, but a single other character
// would make bytes.ToLower go through all of it rune by rune.
func appendLower(low, text []byte) []byte {
	low = slices.Grow(low, len(text))
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			low = append(low, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		low = utf8.AppendRune(low, unicode.ToLower(r))
		i += size
	}
	return low
}

// plain returns text that every store and every provider accepts unchanged.
func plain(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
}

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
	e.Conversation.kept = &keptMessages{redact: redact, made: make(map[int]keptMessage)}
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

// largeMessage is the size in bytes from which a parsed message is kept for the next module, because each
// parse copies all its texts.
const largeMessage = 1 << 20

// largeMessages caches the parsed large messages of a body. They are safe for concurrent use.
type largeMessages struct {
	mu     sync.Mutex
	parsed map[int]conversation.Message
}

// KeepLarge makes the exchange parse each large message of its body only once. The body must not change
// afterwards.
func (e *Exchange) KeepLarge() {
	e.Conversation.large = &largeMessages{parsed: make(map[int]conversation.Message)}
}

// message returns message i. The caller owns its blocks.
func (l *largeMessages) message(i int, raw json.RawMessage, codec wire.Codec) (conversation.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	message, known := l.parsed[i]
	if !known {
		var err error
		if message, err = codec.Parse(raw); err != nil {
			return conversation.Message{}, err
		}
		l.parsed[i] = message
	}
	message.Blocks = slices.Clone(message.Blocks)
	return message, nil
}
