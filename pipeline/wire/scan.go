package wire

import (
	"bytes"
	"encoding/json"
)

// A span is a half-open range of bytes.
type span struct{ start, end int }

// skip returns the offset after the JSON value that starts at i. Between brackets it only follows strings and
// nesting, without validating the rest. Without a value, ok is false and end is the offset of the fault.
func skip(b []byte, i int) (end int, ok bool) {
	if i >= len(b) {
		return len(b), false
	}
	switch b[i] {
	case '"':
		return quoted(b, i)
	case '{', '[':
		return nested(b, i)
	default:
		return scalar(b, i)
	}
}

// tracked is the nesting depth up to which brackets are distinguished from braces.
const tracked = 64

// nested returns the offset after the array or object that starts at i.
func nested(b []byte, i int) (end int, ok bool) {
	depth, braces, deep := 0, uint64(0), false
	for i < len(b) {
		switch b[i] {
		case '"':
			after, closed := quoted(b, i)
			if !closed {
				return after, false
			}
			i = after
			continue
		case '{':
			depth++
			braces = braces<<1 | 1
			deep = deep || depth > tracked
		case '[':
			depth++
			braces <<= 1
			deep = deep || depth > tracked
		case '}', ']':
			if !deep && (braces&1 == 1) != (b[i] == '}') {
				return i, false
			}
			depth--
			braces >>= 1
			if depth == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return len(b), false
}

// values returns about how many JSON values a value contains, up to limit. It counts commas and opening
// brackets.
func values(b []byte, limit int) int {
	found := 0
	for i := 0; i < len(b) && found < limit; i++ {
		switch b[i] {
		case '"':
			end, ok := quoted(b, i)
			if !ok {
				return found
			}
			i = end - 1
		case ',', '[', '{':
			found++
		}
	}
	return found
}

// quoted returns the offset after the string that starts at i.
func quoted(b []byte, i int) (end int, ok bool) {
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b), false
		}
		end = i + n
		slashes := 0
		for end-1-slashes >= i && b[end-1-slashes] == '\\' {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i, true
		}
	}
}

// scalar returns the offset after the number or literal that starts at i.
func scalar(b []byte, i int) (end int, ok bool) {
	end = i
	for end < len(b) && !ends(b[end]) {
		end++
	}
	word := b[i:end]
	switch string(word) {
	case "true", "false", "null":
		return end, true
	}
	if len(word) > 0 && (word[0] == '-' || '0' <= word[0] && word[0] <= '9') && json.Valid(word) {
		return end, true
	}
	return i, false
}

// ends reports whether c ends a number or literal.
func ends(c byte) bool {
	switch c {
	case ',', ']', '}', ':', '"', '[', '{', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// space returns the offset of the first byte from i on that is not white space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// at returns the byte at i; 0 behind the end.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// named reports whether a key, quotes included, spells name.
func named(key []byte, name string) bool {
	if bytes.IndexByte(key, '\\') < 0 {
		return len(key) == len(name)+2 && string(key[1:len(key)-1]) == name
	}
	text, ok := String(key)
	return ok && text == name
}
