package rehydrator

import (
	"strings"
	"unicode"

	"palimpsest/pipeline/conversation"
)

// leastAlike is the minimum share of common words at which two questions count as the same.
const leastAlike = 0.8

// has reports whether the request already contains a hit: its messages, in the same words, or an
// earlier copy of the question itself.
func (q *question) has(hit []conversation.Message) (bool, error) {
	if q.texts == nil {
		q.texts = map[string]bool{}
		for i := range q.exchange.Digests {
			message, err := q.exchange.Message(i)
			if err != nil {
				return false, err
			}
			for j := range message.Blocks {
				q.texts[squeezed(message.Blocks[j].Text)] = true
			}
		}
	}
	for i := range hit {
		for j := range hit[i].Blocks {
			text := squeezed(hit[i].Blocks[j].Text)
			if !q.texts[text] && (hit[i].Role != conversation.User || !isAlike(text, squeezed(q.typed))) {
				return false, nil
			}
		}
	}
	return true, nil
}

// squeezed returns the words of a text in lower case.
func squeezed(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), " ")
}

// isAlike reports whether two squeezed texts share most of their words.
func isAlike(a, b string) bool {
	first, second := wordsOf(a), wordsOf(b)
	both := 0
	for word := range first {
		if second[word] {
			both++
		}
	}
	return float64(both) >= leastAlike*float64(len(first)+len(second)-both)
}

func wordsOf(squeezed string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.SplitSeq(squeezed, " ") {
		words[word] = true
	}
	return words
}
