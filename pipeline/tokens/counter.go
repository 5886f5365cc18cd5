package tokens

import (
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	// memoBits is the binary logarithm of how many pieces a Counter remembers, at
	// eight bytes each.
	memoBits = 16

	// memoLongest is the longest piece that is remembered, in bytes.
	memoLongest = 64
)

// Counter counts tokens as the vocabulary o200k_base does. It is safe for
// concurrent use and takes about 5 MB, however much it counts.
type Counter struct {
	vocabulary *vocabulary
	classes    *classes
	memo       *[1 << memoBits]atomic.Uint64 // by the high bits of a piece's hash: its other bits and its count
}

// sharedVocabulary is the embedded vocabulary, read once and never changed. Reading it takes
// some 50 milliseconds.
var sharedVocabulary = sync.OnceValues(newVocabulary)

// NewCounter returns a counter on the embedded vocabulary.
func NewCounter() (*Counter, error) {
	vocabulary, err := sharedVocabulary()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", vocabularyFile, err)
	}
	return &Counter{vocabulary: vocabulary, classes: newClasses(), memo: new([1 << memoBits]atomic.Uint64)}, nil
}

// Count returns the tokens of an ordinary text: what looks like a special token
// counts as the characters it is written in. The count is exact but for words and
// runs of one kind of character above 8 KiB, of which the rest is taken to be
// like the first 8 KiB. The time is linear in the text.
func (c *Counter) Count(text string) int {
	count := 0
	for i := 0; i < len(text); {
		end := c.classes.piece(text, i)
		count += c.countPiece(text[i:end])
		i = end
	}
	return count
}

// countPiece returns the tokens of one piece. A short one is looked up by its
// hash first. The whole hash is compared: that two pieces share one happens once
// in 2^64, and nobody outside this process can know its seed.
func (c *Counter) countPiece(piece string) int {
	if len(piece) == 1 {
		return 1
	}
	hash := c.vocabulary.hash(piece)
	if len(piece) > memoLongest {
		return c.tokens(piece, hash)
	}
	const low = 1<<memoBits - 1
	entry := &c.memo[hash>>(64-memoBits)]
	known := entry.Load()
	if count := known & low; count > 0 && known&^low == hash<<memoBits {
		return int(count)
	}
	count := c.tokens(piece, hash)
	entry.Store(hash<<memoBits | uint64(count)) //nolint:gosec // memoLongest at most
	return count
}

func (c *Counter) tokens(piece string, hash uint64) int {
	if c.vocabulary.rank(piece, hash) != unranked {
		return 1
	}
	return c.vocabulary.merged(piece)
}
