package providerdouble

import (
	"bytes"
	"encoding/json"
	"slices"
)

// members is a JSON object split into its members.
type members map[string]json.RawMessage

// document splits a body into the members of its object; ok is false for invalid JSON, or any other value.
func document(body []byte) (members, bool) {
	if !json.Valid(body) {
		return nil, false
	}
	return objectMembers(body)
}

// objectMembers splits an object; ok is false for any other value. The object must be valid, as a part of a
// document.
func objectMembers(raw json.RawMessage) (members, bool) {
	m := members{}
	ok := cut(raw, '{', '}', func(key, value []byte) { m[nameOf(key)] = bytes.Clone(value) })
	if !ok {
		return nil, false
	}
	return m, true
}

// elements splits an array; ok is false for any other value. The array must be valid.
func elements(raw json.RawMessage) ([]json.RawMessage, bool) {
	list := []json.RawMessage{}
	ok := cut(raw, '[', ']', func(_, value []byte) { list = append(list, bytes.Clone(value)) })
	if !ok {
		return nil, false
	}
	return list, true
}

// firstByte is the first byte of a value: one of { [ " t f n, or a digit or minus; 0 if empty.
func firstByte(raw json.RawMessage) byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// has reports whether a member is there and not null.
func (m members) has(name string) bool {
	first := firstByte(m[name])
	return first != 0 && first != 'n'
}

// text returns a string member; ok is false if it is missing or not a string.
func (m members) text(name string) (string, bool) {
	return stringValue(m[name])
}

// flag reports whether a member is true.
func (m members) flag(name string) bool { return firstByte(m[name]) == 't' }

// number returns an integer member; ok is false if it is missing or not an integer.
func (m members) number(name string) (int, bool) {
	var n int
	if !m.has(name) || json.Unmarshal(m[name], &n) != nil {
		return 0, false
	}
	return n, true
}

// extra returns the first member, in alphabetical order, outside the known ones; "" if absent.
func (m members) extra(known ...string) string {
	first := ""
	for name := range m {
		if !slices.Contains(known, name) && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

func stringValue(raw json.RawMessage) (string, bool) {
	if firstByte(raw) != '"' {
		return "", false
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", false
	}
	return text, true
}

// matches reports whether a name holds only letters, digits, underscore and hyphen, and has 1 to limit of
// them.
func matches(name string, limit int) bool {
	if name == "" || len(name) > limit {
		return false
	}
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
