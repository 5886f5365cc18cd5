package ledger

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// members yields the members of a JSON object, with their values as sent. It trusts the text to be
// JSON and stops if it is not. It decodes no strings, because most of a call's arguments are long
// strings that aren't needed here.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		at := skipSpace(object, 0)
		if at == len(object) || object[at] != '{' {
			return
		}
		for at++; ; {
			at = skipSpace(object, at)
			if at < len(object) && object[at] == ',' {
				at = skipSpace(object, at+1)
			}
			if at == len(object) || object[at] != '"' {
				return
			}
			name := object[at:stringEnd(object, at)]
			at = skipSpace(object, at+len(name))
			if at == len(object) || object[at] != ':' {
				return
			}
			at = skipSpace(object, at+1)
			end := valueEnd(object, at)
			if !yield(strings.Trim(name, `"`), strings.TrimSpace(object[at:end])) {
				return
			}
			at = end
		}
	}
}

func skipSpace(text string, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// stringEnd returns the end of the JSON string that begins at from.
func stringEnd(text string, from int) int {
	for at := from + 1; ; {
		quote := strings.IndexByte(text[at:], '"')
		if quote < 0 {
			return len(text)
		}
		at += quote + 1
		escapes := 0
		for at-2-escapes > from && text[at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

// valueEnd returns the end of the JSON value that begins at from.
func valueEnd(text string, from int) int {
	depth := 0
	for at := from; at < len(text); at++ {
		switch text[at] {
		case '"':
			at = stringEnd(text, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
		case ',':
			if depth == 0 {
				return at
			}
		}
	}
	return len(text)
}

// decoded decodes a JSON string; "" if the value is not a string.
func decoded(value string) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if inside := value[1 : len(value)-1]; strings.IndexByte(inside, '\\') < 0 {
		return inside
	}
	var whole string
	if json.Unmarshal([]byte(value), &whole) != nil {
		return ""
	}
	return whole
}

// decodedList decodes a JSON string, a list of strings, or a list of objects with a string under
// one of the names.
func decodedList(value string, names ...string) []string {
	if value == "" || value[0] != '[' {
		if one := decoded(value); one != "" {
			return []string{one}
		}
		return nil
	}
	var elements []json.RawMessage
	if json.Unmarshal([]byte(value), &elements) != nil {
		return nil
	}
	var all []string
	for _, element := range elements {
		one := decoded(string(element))
		for name, member := range members(string(element)) {
			if one == "" && slices.Contains(names, name) {
				one = decoded(member)
			}
		}
		if one != "" {
			all = append(all, one)
		}
	}
	return all
}
