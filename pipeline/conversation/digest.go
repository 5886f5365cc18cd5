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

// MarshalText implements encoding.TextMarshaler: a list of 32 numbers would be three times as long.
func (h Hash) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, h[:]), nil
}

// UnmarshalJSON reads what MarshalText has written.
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

// Digest is what is known of a message without reading it again. It depends on
// the message's bytes alone and is remembered by them.
type Digest struct {
	Sum       Hash // of Raw: the message's name in the archive, unless it is redacted there
	Identity  Hash // of role and content without ids and cache markers: the same message sent again
	Role      Role
	Flags     Flags
	Tokens    int    // o200k tokens of everything the model reads, media by estimate
	Markers   int    // cache_control markers inside
	MarkerTTL string // of the last marker inside: "5m" or "1h"; empty without one
}

// Flags say what kinds of blocks a message holds.
type Flags uint16

// The flags of a message.
const (
	HasTyped    Flags = 1 << iota // text that a person typed, injected reminders apart
	HasCall                       // a tool call that the client answers
	HasResult                     // the result of one
	HasThinking                   // thinking or reasoning
	HasMedia                      // an image, document or sound
	HasOpaque                     // blocks that travel whole or not at all
	IsPart                        // a piece of an answer, not a whole one: the items of Responses
	IsPinned                      // must stay as it is: compaction items, item references, unknown roles, system messages that hold more than text
	LoadsTools                    // makes tools known to the model: what does so stays as it is
	HasPending                    // a call that the provider answers itself, in a later message
	HasSettled                    // the provider's answer to such a call of an earlier message
	IsBoundary                    // stands for a history that only the provider knows: a compaction of its own
)

// Has reports whether any of want is set.
func (f Flags) Has(want Flags) bool { return f&want != 0 }

// Extend returns the link of a hash chain that follows parent: two histories with
// the same link are the same up to here. It is made once for each message of each
// request: BLAKE2s takes a quarter of SHA-256's time for it.
func Extend(parent, identity Hash) Hash {
	var both [2 * sha256.Size]byte
	copy(both[:], parent[:])
	copy(both[sha256.Size:], identity[:])
	return blake2s.Sum256(both[:])
}
