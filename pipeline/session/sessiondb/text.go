package sessiondb

import "strings"

// storable returns text in a form that a text column accepts: valid UTF-8 without NUL.
func storable(text string) string {
	if strings.ContainsRune(text, 0) {
		text = strings.ReplaceAll(text, "\x00", "")
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// pattern returns an ILIKE pattern for text anywhere.
func pattern(text string) string {
	return "%" + prefix(text)
}

// prefix returns a LIKE pattern for values that begin with a text.
func prefix(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(storable(text)) + "%"
}
