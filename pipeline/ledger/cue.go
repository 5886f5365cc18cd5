package ledger

import "strings"

// cues are the words that tell what a sentence is, by the first of them.
type cues map[string][]string

// cuesOf makes cues of words in small letters.
func cuesOf(list ...string) cues {
	byFirst := cues{}
	for _, words := range list {
		first := words[:wordEnd(words, 0)]
		byFirst[first] = append(byFirst[first], words)
	}
	return byFirst
}

// in reports whether a text in small letters holds any of the words, as words.
func (c cues) in(low string) bool {
	for at := 0; at < len(low); {
		if !isWordByte(low[at]) {
			at++
			continue
		}
		if c.starts(low[at:]) {
			return true
		}
		at = wordEnd(low, at)
	}
	return false
}

// starts reports whether a text in small letters begins with any of the words.
func (c cues) starts(low string) bool { return c.end(low) > 0 }

// end returns where the words end with which a text in small letters begins; 0 if it begins
// with none.
func (c cues) end(low string) int {
	for _, words := range c[low[:wordEnd(low, 0)]] {
		if strings.HasPrefix(low, words) && (len(low) == len(words) || !isWordByte(low[len(words)]) || !isWordByte(words[len(words)-1])) {
			return len(words)
		}
	}
	return 0
}

// wordEnd returns where the word that begins at from ends.
func wordEnd(text string, from int) int {
	for from < len(text) && isWordByte(text[from]) {
		from++
	}
	return from
}

// hasWords returns where words stand as words in a text; -1 if they do not.
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
