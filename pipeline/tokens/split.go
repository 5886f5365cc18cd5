package tokens

import "unicode/utf8"

// piece returns where the piece of text that begins at i ends. o200k_base's pattern splits a text into pieces
// before it looks for tokens, so no token spans two pieces. The pattern's alternatives, in its order:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
//
// The time is linear in the text, because text examined in vain belongs to the next piece.
func (c *classes) piece(text string, i int) int {
	if end := plainWord(text, i); end > 0 {
		return end
	}
	first, size := c.at(text, i)
	switch {
	case first&letter != 0:
		end, _ := c.word(text, i)
		return end
	case first&number != 0:
		return c.digits(text, i+size)
	case first&newline == 0:
		if end := c.prefixed(text, i, i+size, first); end > 0 {
			return end
		}
	}
	if end := c.punctuation(text, i); end > 0 {
		return end
	}
	return c.blank(text, i)
}

// plainWord returns the end of the most common kind of piece with less work: an ASCII word with at most one
// capital, at its start, and optionally a space before it. It returns 0 for all other pieces.
func plainWord(text string, i int) int {
	if text[i] == ' ' {
		i++
	}
	if i < len(text) && isCapital(text[i]) {
		i++
	}
	start := i
	for i < len(text) && isSmall(text[i]) {
		i++
	}
	switch {
	case i == start:
		return 0
	case i == len(text):
		return i
	case text[i] == '\'':
		return contracted(text, i)
	case text[i] >= utf8.RuneSelf:
		return 0
	default:
		return i
	}
}

func isCapital(b byte) bool { return b-'A' <= 'Z'-'A' }

func isSmall(b byte) bool { return b-'a' <= 'z'-'a' }

// prefixed returns the end of a word whose first letter, at next, follows one other character; 0 if absent.
func (c *classes) prefixed(text string, i, next int, first class) int {
	if next < len(text) {
		if following, _ := c.at(text, next); following&(letter|mark) != 0 {
			end, tailed := c.word(text, next)
			if tailed || first&mark == 0 {
				return end
			}
		}
	}
	if first&mark == 0 {
		return 0
	}
	// A mark alone is a word with a tail, which is tried before words without one.
	end, _ := c.word(text, i)
	return end
}

// word returns the end of the word that begins at i, its head in upper case and its tail in lower case, and
// whether it has a tail. The text at i must be a letter or a mark.
func (c *classes) word(text string, i int) (end int, tailed bool) {
	end, lastBoth := i, 0 // lastBoth: where a tail could begin at the latest, and end
	for end < len(text) {
		class, size := c.at(text, end)
		if class&upper == 0 {
			break
		}
		end += size
		if class&lower != 0 {
			lastBoth = end
		}
	}
	head := end
	for end < len(text) {
		class, size := c.at(text, end)
		if class&lower == 0 {
			break
		}
		end += size
	}
	switch {
	case end > head:
		return contracted(text, end), true
	case lastBoth > 0:
		return contracted(text, lastBoth), true
	default:
		return contracted(text, end), false
	}
}

// contracted returns the end of a word including an English contraction at i.
func contracted(text string, i int) int {
	if i+1 >= len(text) || text[i] != '\'' {
		return i
	}
	const lowered = 0x20
	switch text[i+1] | lowered {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if i+2 < len(text) && text[i+2]|lowered == 'e' {
			return i + 3
		}
	case 'l':
		if i+2 < len(text) && text[i+2]|lowered == 'l' {
			return i + 3
		}
	}
	return i
}

// digits returns the end of a number that has one digit before i.
func (c *classes) digits(text string, i int) int {
	for range 2 {
		if i == len(text) {
			break
		}
		class, size := c.at(text, i)
		if class&number == 0 {
			break
		}
		i += size
	}
	return i
}

// punctuation returns the end of a run of other characters, with an optional space before it and line ends or
// slashes after it; 0 if absent at i.
func (c *classes) punctuation(text string, i int) int {
	start := i
	if text[i] == ' ' {
		start++
	}
	end := start
	for end < len(text) {
		class, size := c.at(text, end)
		if class&(space|letter|number) != 0 {
			break
		}
		end += size
	}
	if end == start {
		return 0
	}
	for end < len(text) && (text[end] == '\n' || text[end] == '\r' || text[end] == '/') {
		end++
	}
	return end
}

// blank returns the end of a run of white space: after its last line end, or before its last character if
// text follows, because that character belongs to the next piece.
func (c *classes) blank(text string, i int) int {
	end, last, line := i, i, 0
	for end < len(text) {
		class, size := c.at(text, end)
		if class&space == 0 {
			break
		}
		last = end
		end += size
		if class&newline != 0 {
			line = end
		}
	}
	switch {
	case line > 0:
		return line
	case end < len(text) && last > i:
		return last
	default:
		return end
	}
}
