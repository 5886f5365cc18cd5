package ledger

import "strings"

// cues are words that reveal the kind of a sentence.
type cues struct {
	byFirst map[string][]string // by their first word
	lengths [256]uint64         // by the first byte: a bit for each length of a first word
}

// cuesOf makes cues of words in lower case.
func cuesOf(list ...string) *cues {
	c := &cues{byFirst: map[string][]string{}}
	for _, words := range list {
		first := words[:wordEnd(words, 0)]
		c.byFirst[first] = append(c.byFirst[first], words)
		c.lengths[words[0]] |= bit(len(first))
	}
	return c
}

// bit is the bit for a length of a word; long ones share one.
func bit(length int) uint64 { return 1 << min(length, 63) }

// in reports whether a text in lower case holds any of the words, as words.
func (c *cues) in(low string) bool {
	for at := 0; at < len(low); {
		if !isWordByte(low[at]) {
			at++
			continue
		}
		end := wordEnd(low, at)
		if c.after(low[at:], end-at) > 0 {
			return true
		}
		at = end
	}
	return false
}

// starts reports whether a text in lower case begins with any of the words.
func (c *cues) starts(low string) bool { return c.end(low) > 0 }

// end returns the position after the words that a text in lower case begins with; 0 if it
// doesn't begin with any.
func (c *cues) end(low string) int { return c.after(low, wordEnd(low, 0)) }

// after is end for a text whose first word has a known length. It rejects most words at once,
// because no cue with the same first byte has their length.
func (c *cues) after(low string, first int) int {
	if low == "" || c.lengths[low[0]]&bit(first) == 0 {
		return 0
	}
	for _, words := range c.byFirst[low[:first]] {
		if strings.HasPrefix(low, words) && (len(low) == len(words) || !isWordByte(low[len(words)]) || !isWordByte(words[len(words)-1])) {
			return len(words)
		}
	}
	return 0
}

// wordEnd returns the end of the word that begins at from.
func wordEnd(text string, from int) int {
	for from < len(text) && isWordByte(text[from]) {
		from++
	}
	return from
}

// hasWords returns the position of words in a text, as whole words; -1 if absent.
func hasWords(text, words string) int {
	for at := 0; ; {
		i := strings.Index(text[at:], words)
		if i < 0 {
			return -1
		}
		i += at
		end := i + len(words)
		if (i == 0 || !isWordByte(text[i-1])) && (end == len(text) || !isWordByte(text[end])) {
			return i
		}
		at = end
	}
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '\''
}
