// Package excerpts shortens texts without splitting a character. Each package may import it.
package excerpts

import "unicode/utf8"

// ellipsis stands for the text that is left out.
const ellipsis = "…"

// Bytes returns the beginning of a text, at most so many bytes.
func Bytes(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}

// First returns the first characters of a text.
func First(text string, characters int) string {
	left := characters
	for at := range text {
		if left <= 0 {
			return text[:at]
		}
		left--
	}
	return text
}

// Start returns a text of at most so many characters: the beginning with an ellipsis if the text is longer.
func Start(text string, characters int) string {
	if len(First(text, characters)) == len(text) {
		return text
	}
	return First(text, characters-1) + ellipsis
}

// Ends returns a text, or its beginning and its end, with so many characters in total, around the result of gap
// for the number of characters between them.
func Ends(text string, characters int, gap func(left int) string) string {
	length := utf8.RuneCountInString(text)
	if length <= characters {
		return text
	}
	head := characters * 2 / 3
	beginning, to := First(text, head), len(text)
	for range characters - head {
		_, size := utf8.DecodeLastRuneInString(text[:to])
		to -= size
	}
	return beginning + gap(length-characters) + text[to:]
}
