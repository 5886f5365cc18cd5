package wire

import (
	"bytes"
	"errors"

	"palimpsest/pipeline/conversation"
)

var (
	// ErrEmpty says that a changed message has nothing left to say.
	ErrEmpty = errors.New("nothing is left of the message")

	// ErrFixed says that a block was changed that travels as it is or not at all.
	ErrFixed = errors.New("the block must not be changed")
)

// Origins returns, for each block of a changed message, the index of the block
// that it was among those sent; -1 for a new one. Blocks may have been left out,
// but not moved.
func Origins(sent, blocks []conversation.Block) []int {
	origins, next := make([]int, len(blocks)), 0
	for i := range blocks {
		origins[i] = -1
		if len(sent) == len(blocks) && sent[i].Kind == blocks[i].Kind && sent[i].ID == blocks[i].ID {
			origins[i], next = i, i+1
			continue
		}
		for j := next; j < len(sent); j++ {
			if comesFrom(&blocks[i], &sent[j]) {
				origins[i], next = j, j+1
				break
			}
		}
	}
	return origins
}

// comesFrom reports whether a block is one that was sent, be it with another text.
func comesFrom(block, sent *conversation.Block) bool {
	if block.Kind != sent.Kind || block.ID != sent.ID {
		return false
	}
	if block.Raw != nil || sent.Raw == nil {
		return bytes.Equal(block.Raw, sent.Raw)
	}
	return block.ID != ""
}
