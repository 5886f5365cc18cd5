package tokens

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
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

const (
	// exactBytes is how much text of one message, or of one part before the messages, is counted exactly.
	// Merging unknown text is ten times slower than the rest of reading a request, so texts made only of it
	// need a limit.
	exactBytes = 512 << 10

	// unknownBytes and foreignBytes are the assumed bytes per token in a piece that isn't a token itself,
	// when texts are counted roughly, in ASCII and in other scripts.
	unknownBytes = 3
	foreignBytes = 4
)

// tally counts the texts of one message: exactly up to a number of bytes, and roughly beyond. Its counts
// depend only on the texts.
type tally struct {
	*Counter
	exact int // bytes left
}

// newTally returns a tally that begins with exact counts.
func (c *Counter) newTally() *tally { return &tally{Counter: c, exact: exactBytes} }

// Rough estimates the tokens of a message as Message does, but counts no text exactly, so that its cost is
// the same for any text.
func (c *Counter) Rough(message conversation.Message) int {
	rough := &tally{Counter: c}
	return rough.message(message)
}

// text returns the tokens of a text.
func (t *tally) text(text string) int {
	if len(text) <= t.exact {
		t.exact -= len(text)
		return t.Count(text)
	}
	count := 0
	for i := 0; i < len(text); {
		end := t.classes.piece(text, i)
		if t.exact > 0 {
			count += t.countPiece(text[i:end])
		} else {
			count += t.roughPiece(text[i:end])
		}
		t.exact -= end - i
		i = end
	}
	return count
}

// roughPiece returns the tokens of one piece without merging.
func (c *Counter) roughPiece(piece string) int {
	if len(piece) == 1 || c.vocabulary.rankOf(piece) != unranked {
		return 1
	}
	if piece[len(piece)-1] >= utf8.RuneSelf {
		return (len(piece) + foreignBytes - 1) / foreignBytes
	}
	return (len(piece) + unknownBytes - 1) / unknownBytes
}

// json estimates the tokens of a JSON value as a model reads it: with decoded strings, without white space
// around tokens and without cache markers. Payloads are estimated by their kind and length.
func (t *tally) json(raw json.RawMessage) int {
	var text strings.Builder
	sum, mediaType := 0, ""
	for values := (scanner{raw: raw}); ; {
		token, kind := values.next()
		switch {
		case kind == ended:
			return sum + t.text(text.String())
		case kind == memberName && string(values.name) == "cache_control":
			values.skip()
		case kind == stringValue && isSeal(values.name):
			sum += sealed(len(token))
		case kind == stringValue:
			if file, is := payloadOf(token); is {
				sum += file.tokens(mediaType)
				continue
			}
			content := decoded(token)
			if isType(values.name) {
				mediaType = content
			}
			text.WriteByte('"')
			text.WriteString(content)
			text.WriteByte('"')
		default:
			text.Write(token)
		}
	}
}

// isType reports whether a member names the type of a file next to it.
func isType(name []byte) bool {
	switch string(name) {
	case "media_type", "mime_type", "mimeType", "type":
		return true
	}
	return false
}

// isSeal reports whether a member holds content that only the provider can read.
func isSeal(name []byte) bool {
	switch string(name) {
	case "signature", "encrypted_content", "encrypted_index":
		return true
	}
	return false
}

// Sealed reasoning, which a provider hands out to be sent back, is as long as its text: in a few samples of
// Claude's thinking with a visible whole text, the signature was that text plus sealEnvelope bytes, in
// base64.
const (
	sealEnvelope     = 175 // bytes
	sealedTokenBytes = 4   // of sealed text per token
)

// sealed estimates the tokens of a sealed payload from its length in base64.
func sealed(length int) int {
	return max(0, length*3/4-sealEnvelope) / sealedTokenBytes
}

// sealedIn estimates the tokens of the sealed content in a block of thinking or reasoning.
func sealedIn(raw json.RawMessage) int {
	var block struct {
		Signature string `json:"signature"`         // Anthropic: thinking
		Data      string `json:"data"`              // Anthropic: redacted_thinking
		Encrypted string `json:"encrypted_content"` // OpenAI: reasoning
	}
	if len(raw) == 0 || json.Unmarshal(raw, &block) != nil {
		return 0
	}
	return sealed(len(block.Signature)) + sealed(len(block.Data)) + sealed(len(block.Encrypted))
}
