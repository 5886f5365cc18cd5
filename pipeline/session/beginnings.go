package session

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/wire"
)

const (
	// blockSize is how much of a list of messages is recognized at a time, in bytes.
	blockSize = 16 << 10
	// beginningsMemory bounds what the blocks take in memory, in bytes.
	beginningsMemory = 96 << 20
	// unread is how many messages behind the known ones there is room for from the start,
	// beside as many as the fullest block holds: the last block is never known.
	unread = 32
)

// beginnings knows how lists of messages begin. A client sends its whole history
// with every request, so nearly all of a list has been read before: it is
// recognized block by block, each by everything up to its end, and only what
// follows the last known block is read.
type beginnings struct {
	blocks *localcache.Cache[fingerprint, block]
	seed   uint64
}

// block is what a list holds in one block: the messages that end in it.
type block struct {
	stretches []wire.Range
	digests   []conversation.Digest
}

// weight is what a block takes in memory, in bytes, roughly.
func (b block) weight() uint32 { return uint32(160 + 136*len(b.digests)) } //nolint:gosec // a block holds few messages

// reading is a list that is being recognized.
type reading struct {
	format conversation.Format
	known  int          // blocks that were recognized
	last   xxh3.Uint128 // of everything up to the end of them
	block               // what they hold
}

func newBeginnings(seed uint64) (*beginnings, error) {
	blocks, err := localcache.New[fingerprint](localcache.Options[block]{
		MaximumWeight: beginningsMemory,
		Weigher:       block.weight,
	})
	if err != nil {
		return nil, fmt.Errorf("known beginnings: %w", err)
	}
	return &beginnings{blocks: blocks, seed: seed}, nil
}

// recognize returns what is known of a list, which may go on behind its end.
func (b *beginnings) recognize(format conversation.Format, list []byte) reading {
	found := reading{format: format}
	var blocks []block
	messages, most := 0, 0
	for end := blockSize; end <= len(list); end += blockSize {
		hash := b.extend(found.last, list[end-blockSize:end])
		known, ok := b.blocks.Get(fingerprintOf(format, hash, reads{}))
		if !ok {
			break
		}
		found.last = hash
		blocks = append(blocks, known)
		messages, most = messages+len(known.digests), max(most, len(known.digests))
	}
	if found.known = len(blocks); found.known == 0 {
		return found
	}
	found.stretches = make([]wire.Range, 0, messages)
	found.digests = make([]conversation.Digest, 0, messages+most+unread)
	for _, known := range blocks {
		found.stretches = append(found.stretches, known.stretches...)
		found.digests = append(found.digests, known.digests...)
	}
	return found
}

// learn remembers the blocks of a whole list that were not recognized.
func (b *beginnings) learn(found reading, list []byte, messages []conversation.Digest, stretch func(i int) wire.Range) {
	if list[0] != '[' {
		return // a string that stands for a list
	}
	last, next := found.last, len(found.digests)
	for end := (found.known + 1) * blockSize; end < len(list); end += blockSize {
		last = b.extend(last, list[end-blockSize:end])
		var holds block
		for ; next < len(messages); next++ {
			where := stretch(next)
			if int(where.End) > end {
				break
			}
			holds.stretches = append(holds.stretches, where)
			holds.digests = append(holds.digests, messages[next])
		}
		b.blocks.Set(fingerprintOf(found.format, last, reads{}), holds)
	}
}

// extend returns the hash of what has the hash before, followed by a block.
func (b *beginnings) extend(before xxh3.Uint128, content []byte) xxh3.Uint128 {
	own := xxh3.Hash128Seed(content, b.seed)
	var both [32]byte
	binary.LittleEndian.PutUint64(both[0:], before.Lo)
	binary.LittleEndian.PutUint64(both[8:], before.Hi)
	binary.LittleEndian.PutUint64(both[16:], own.Lo)
	binary.LittleEndian.PutUint64(both[24:], own.Hi)
	return xxh3.Hash128Seed(both[:], b.seed)
}
