package providerdouble

import (
	"bytes"
	"encoding/json"
)

// cut yields the parts of a valid JSON object or array, in order, with their keys if it is an object. It
// reports whether raw begins and ends with the given bytes. It exists because a document is cut at every
// level, and encoding/json would check all of it again at each.
func cut(raw []byte, opening, closing byte, part func(key, value []byte)) bool {
	raw = bytes.Trim(raw, " \t\r\n")
	if len(raw) < 2 || raw[0] != opening || raw[len(raw)-1] != closing {
		return false
	}
	rest := blanks(raw[1 : len(raw)-1])
	for len(rest) > 0 {
		var key []byte
		if opening == '{' {
			key = rest[:valueEnd(rest)]
			rest = bytes.TrimPrefix(blanks(rest[len(key):]), []byte{':'})
			rest = blanks(rest)
		}
		end := valueEnd(rest)
		if end == 0 {
			return false
		}
		part(key, rest[:end])
		rest = blanks(bytes.TrimPrefix(blanks(rest[end:]), []byte{','}))
	}
	return true
}

func blanks(raw []byte) []byte { return bytes.TrimLeft(raw, " \t\r\n") }

// valueEnd returns the length of the value that raw begins with.
func valueEnd(raw []byte) int {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i += stringEnd(raw[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 { // after a number, true, false or null
				return i
			}
		}
	}
	return len(raw)
}

// stringEnd returns the length of the string that raw begins with, with its quotes.
func stringEnd(raw []byte) int {
	for i := 1; i < len(raw); i++ {
		quote := bytes.IndexByte(raw[i:], '"')
		if quote < 0 {
			break
		}
		i += quote
		slashes := 0
		for raw[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(raw)
}

// nameOf returns the decoded key of an object.
func nameOf(key []byte) string {
	if inner := bytes.Trim(key, `"`); len(inner) == len(key)-2 && bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var name string
	_ = json.Unmarshal(key, &name) // it is part of a valid document
	return name
}
