package archive

import (
	"crypto/sha256"
	"encoding/binary"

	"palimpsest/pipeline/conversation"
)

// Head is the end of a lane's chain: the link after its first messages.
//
// The chain of a lane begins with the SHA-256 of "palimpsest chain 1". The link
// after the message at index i is
//
//	SHA-256(link before it ‖ i as 8 bytes, big endian ‖ SHA-256 of the message)
//
// where the message is its bytes as they are stored: as the client sent them, or with personal data replaced
// if its workspace redacts. A link therefore identifies all messages up to its own, with their order and
// places.
type Head struct {
	Messages int // linked messages, from index 0
	Link     conversation.Hash
}

// NewHead returns the head of a lane without messages.
func NewHead() Head { return Head{Link: sha256.Sum256([]byte("palimpsest chain 1"))} }

// Extend returns the head after one more message, which has the index Messages.
func (h Head) Extend(hash conversation.Hash) Head {
	return Head{Messages: h.Messages + 1, Link: Link(h.Link, h.Messages, hash)}
}

// Link returns the link after a message with a hash at an index.
func Link(before conversation.Hash, index int, hash conversation.Hash) conversation.Hash {
	var linked [len(before) + 8 + len(hash)]byte
	copy(linked[:], before[:])
	binary.BigEndian.PutUint64(linked[len(before):], uint64(index)) //nolint:gosec // a place in one body
	copy(linked[len(before)+8:], hash[:])
	return sha256.Sum256(linked[:])
}
