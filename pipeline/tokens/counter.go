package tokens

import (
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	// memoBits is the binary logarithm of how many pieces a Counter caches, at eight bytes each.
	memoBits = 16

	// memoLongest is the longest cached piece, in bytes.
	memoLongest = 64
)

// tables loads the vocabulary and the classes once for all counters of the process: 5 MB, some 50 ms.
var tables = sync.OnceValues(func() (*Counter, error) { //nolint:gochecknoglobals // never changed
	vocabulary, err := newVocabulary()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", vocabularyFile, err)
	}
	return &Counter{vocabulary: vocabulary, classes: newClasses()}, nil
})

// Counter counts tokens of the vocabulary o200k_base. It is safe for concurrent use and takes a constant 512
// KB in addition to the shared vocabulary.
type Counter struct {
	vocabulary *vocabulary
	classes    *classes
	memo       *[1 << memoBits]atomic.Uint64 // by the high bits of a piece's hash: its other bits and its count
}

// NewCounter returns a counter with an empty cache. The first call reads the embedded vocabulary.
func NewCounter() (*Counter, error) {
	shared, err := tables()
	if err != nil {
		return nil, err
	}
	return &Counter{vocabulary: shared.vocabulary, classes: shared.classes, memo: new([1 << memoBits]atomic.Uint64)}, nil
}

// Count returns the tokens of an ordinary text. Special tokens count as plain characters. The count is exact
// except for words and runs of one kind of character above 8 KiB, whose rest is extrapolated from the first 8
// KiB. The time is linear in the text.
func (c *Counter) Count(text string) int {
	count := 0
	for i := 0; i < len(text); {
		end := c.classes.piece(text, i)
		count += c.countPiece(text[i:end])
		i = end
	}
	return count
}

// countPiece returns the tokens of one piece. A short one is looked up by its whole hash first. Two pieces
// have the same hash with a probability of 2^-64, and only this process knows the seed.
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
