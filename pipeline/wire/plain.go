package wire

import (
	"encoding/json"
	"slices"
)

// IsPlainText reports whether a message's content is only text: a string, or an array of parts of the given
// types whose only members are type, text, and those in more.
func IsPlainText(content json.RawMessage, types []string, more ...string) bool {
	if _, ok := String(content); ok {
		return true
	}
	if len(content) == 0 || content[0] != '[' {
		return false
	}
	for _, part := range Elements(content) {
		if !slices.Contains(types, Text(part, "type")) {
			return false
		}
		for name := range Members(part) {
			if member := string(name); member != "type" && member != "text" && !slices.Contains(more, member) {
				return false
			}
		}
	}
	return true
}

// TextsOf returns a string member of each object in an array, in order.
func TextsOf(array json.RawMessage, member string) []string {
	var texts []string
	for _, element := range Elements(array) {
		texts = append(texts, Text(element, member))
	}
	return texts
}
