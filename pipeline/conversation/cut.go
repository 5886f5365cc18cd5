package conversation

import "unicode/utf8"

// Cut returns the beginning of a text, at most so many bytes, without splitting a character.
func Cut(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}
