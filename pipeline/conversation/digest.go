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
