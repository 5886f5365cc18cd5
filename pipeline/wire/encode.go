package wire

import (
	"bytes"
	"errors"

	"palimpsest/pipeline/conversation"
)

var (
	// ErrEmpty means that a changed message has no content left.
	ErrEmpty = errors.New("nothing is left of the message")

	// ErrFixed means that a block was changed that must be sent unchanged or left out.
	ErrFixed = errors.New("the block must not be changed")
)

// Origins returns, for each block of a changed message, the index of that block in the original message; -1
// for a new one. Blocks may be removed but not reordered.
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

// comesFrom reports whether a block is an original one, possibly with different text.
func comesFrom(block, sent *conversation.Block) bool {
	if block.Kind != sent.Kind || block.ID != sent.ID {
		return false
	}
	if block.Raw != nil || sent.Raw == nil {
		return bytes.Equal(block.Raw, sent.Raw)
	}
	return block.ID != ""
}
