package session

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/semaphore"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/wire"
)

const (
	// blockSize is the size of the blocks in which a list is recognized, in bytes.
	blockSize = 16 << 10
	// beginningsMemory bounds the memory of all blocks, in bytes.
	beginningsMemory = 96 << 20
	// unread is the initial room for messages after the known ones, in addition to the size of the fullest
	// block, because the last block is never known.
	unread = 32
)

// beginnings recognizes the beginnings of message lists. A client sends its whole history with every request,
// so nearly all of a list has been read before. A list is recognized block by block, each by the hash of
// everything up to its end, and only the rest after the last known block is read.
type beginnings struct {
	blocks *localcache.Cache[fingerprint, block]
	seed   uint64
}

// block holds the messages that end in one block of a list.
type block struct {
	stretches []wire.Range
	digests   []conversation.Digest
}

// weight is the block's approximate size in memory, in bytes.
func (b block) weight() uint32 { return uint32(160 + 136*len(b.digests)) } //nolint:gosec // a block holds few messages

// reading is a list during its recognition.
type reading struct {
	format conversation.Format
	known  int          // recognized blocks
	last   xxh3.Uint128 // hash of everything up to their end
	block               // their content
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

// recognize returns the known beginning of a list. list may continue after its end.
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

// learn remembers the unrecognized blocks of a complete list.
func (b *beginnings) learn(found reading, list []byte, messages []conversation.Digest, stretch func(i int) wire.Range) {
	if list[0] != '[' {
		return // a string in place of a list
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

// extend returns the hash of content after a block with the hash before.
func (b *beginnings) extend(before xxh3.Uint128, content []byte) xxh3.Uint128 {
	own := xxh3.Hash128Seed(content, b.seed)
	var both [32]byte
	binary.LittleEndian.PutUint64(both[0:], before.Lo)
	binary.LittleEndian.PutUint64(both[8:], before.Hi)
	binary.LittleEndian.PutUint64(both[16:], own.Lo)
	binary.LittleEndian.PutUint64(both[24:], own.Hi)
	return xxh3.Hash128Seed(both[:], b.seed)
}

// openings let one request at a time open the lane of a history. Unrelated histories may share an opening,
// which is acceptable because it is held only for a query to the store.
type openings [256]*semaphore.Weighted

func newOpenings() openings {
	var all openings
	for i := range all {
		all[i] = semaphore.NewWeighted(1)
	}
	return all
}

// of returns the opening of the histories with a link.
func (d *openings) of(link conversation.Hash) *semaphore.Weighted { return d[link[0]] }
