package tokens

import (
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

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
