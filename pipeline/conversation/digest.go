package conversation

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"golang.org/x/crypto/blake2s"
)

// Hash is a SHA-256, or a link of a history.
type Hash [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler, because a list of 32 numbers would be three times as long.
func (h Hash) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, h[:]), nil
}

// UnmarshalJSON reads the output of MarshalText.
func (h *Hash) UnmarshalJSON(encoded []byte) error {
	var text string
	if err := json.Unmarshal(encoded, &text); err != nil {
		return fmt.Errorf("hash: %w", err)
	}
	read, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(read) != len(h) {
		return fmt.Errorf("hash %.50q doesn't have %d bytes in base64", text, len(h))
	}
	*h = Hash(read)
	return nil
}

// Digest summarizes a message, so that it need not be read again. It depends only on the message's bytes, so
// that these can be its cache key.
type Digest struct {
	Sum       Hash // of Raw: the message's name in the archive, unless it is redacted there
	Identity  Hash // of role and content without ids and cache markers, equal if the same message is sent again
	Role      Role
	Flags     Flags
	Tokens    int    // o200k tokens of everything the model reads, media by estimate
	Markers   int    // cache_control markers inside
	MarkerTTL string // of the last marker inside: "5m" or "1h"; "" if absent
}

// Flags are the kinds of blocks in a message.
type Flags uint16

// The flags of a message.
const (
	HasTyped    Flags = 1 << iota // text typed by a person, excluding injected reminders
	HasCall                       // a tool call that the client answers
	HasResult                     // the result of such a call
	HasThinking                   // thinking or reasoning
	HasMedia                      // an image, document or sound
	HasOpaque                     // blocks that are sent unchanged or left out
	IsPart                        // a part of an answer, as the items of Responses
	IsPinned                      // must stay unchanged: compaction items, item references, unknown roles, system messages with content other than text
	LoadsTools                    // makes tools known to the model, so it must stay unchanged
	HasPending                    // a call that the provider answers in a later message
	HasSettled                    // the provider's answer to such a call of an earlier message
	IsBoundary                    // the provider's own compaction of a history that only it knows
)

// Has reports whether any of want is set.
func (f Flags) Has(want Flags) bool { return f&want != 0 }

// Extend returns the link after parent in a hash chain: two histories with the same link are the same up to
// there. It runs once for each message of each request, so it uses BLAKE2s, which takes a quarter of
// SHA-256's time.
func Extend(parent, identity Hash) Hash {
	var both [2 * sha256.Size]byte
	copy(both[:], parent[:])
	copy(both[sha256.Size:], identity[:])
	return blake2s.Sum256(both[:])
}

// Turn is the smallest group of messages that stays together: an assistant message, the typed user messages
// right before it, and all tool results for it. From and To are indices into the list, To excluded.
type Turn struct{ From, To int }

// Turns groups a list, oldest turn first, into its turns. Leading system messages belong to no turn; the
// first turn starts after them. A user message without an answer is a separate turn.
func Turns(messages []Digest) []Turn {
	start := Lead(messages)
	turns := make([]Turn, 0, len(messages)/2+1)
	open, held := Turn{From: start, To: start}, holding{}
	for i := start; i < len(messages); i++ {
		if held.isLeftBy(&messages[i]) {
			turns = append(turns, open)
			open, held = Turn{From: i}, holding{}
		}
		open.To = i + 1
		held.add(&messages[i])
	}
	if open.To > open.From {
		turns = append(turns, open)
	}
	return turns
}

// Lead counts the system messages at the head of a list.
func Lead(messages []Digest) int {
	n := 0
	for n < len(messages) && messages[n].Role == System {
		n++
	}
	return n
}

// holding is the content of the open turn so far.
type holding struct {
	answer    bool // an assistant message
	results   bool // tool results
	reasoning bool
	pending   int // calls whose results are still to come, if each is a separate message
	provider  int // messages with calls that the provider has not answered yet
}

// isLeftBy reports whether a message opens the next turn. Responses may interleave the calls of one answer
// with their outputs, so a turn does not end before every call has its output, and a bare call after an
// output stays with the reasoning it depends on. A provider's answer in a later message belongs to the turn
// of its call.
func (h *holding) isLeftBy(message *Digest) bool {
	if !h.answer || h.pending > 0 {
		return false
	}
	switch message.Role {
	case User:
		return !message.Flags.Has(HasResult)
	case Assistant:
		if h.provider > 0 {
			return false
		}
		bareCall := message.Flags.Has(IsPart) && message.Flags.Has(HasCall)
		return h.results && !(bareCall && h.reasoning)
	default:
		return false
	}
}

// add adds a message to the turn.
func (h *holding) add(message *Digest) {
	if message.Flags.Has(HasSettled) {
		h.provider = max(0, h.provider-1)
	}
	if message.Flags.Has(HasPending) {
		h.provider++
	}
	switch {
	case message.Role == Assistant:
		h.answer = true
		h.reasoning = h.reasoning || message.Flags.Has(HasThinking)
		if message.Flags.Has(IsPart) && message.Flags.Has(HasCall) {
			h.pending++
		}
	case message.Flags.Has(HasResult):
		h.results = true
		h.pending = max(0, h.pending-1)
	}
}
