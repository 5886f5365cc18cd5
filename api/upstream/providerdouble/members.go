package providerdouble

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
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

// memoLimit bounds how many elements are remembered.
const memoLimit = 1 << 14

// memo remembers parsed elements by the sum of their bytes, because a client
// sends its whole history with every request.
type memo[T any] struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*T
}

func (m *memo[T]) find(key [sha256.Size]byte) (*T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, ok := m.known[key]
	return element, ok
}

func (m *memo[T]) keep(key [sha256.Size]byte, parsed *T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= memoLimit {
		m.known = make(map[[sha256.Size]byte]*T)
	}
	m.known[key] = parsed
}

// at names element i of a list.
func at(path string, i int) string { return path + "." + strconv.Itoa(i) }

// item names element i of a list as OpenAI does.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// sumText is the sum of a text block, whether it came as a string or as a block.
func sumText(text string) [sha256.Size]byte {
	return sha256.Sum256(append([]byte("text\x00"), text...))
}

// sumBlock is the sum of a block without its cache markers.
func sumBlock(b *block) [sha256.Size]byte {
	if b.kind == "text" && b.members.extra("type", "text", "cache_control") == "" {
		return sumText(b.text)
	}
	return sha256.Sum256(unmarked(b.raw, b.kind))
}

// unmarked returns a value without insignificant space and without the
// cache_control members of the object itself and of the blocks in its content.
func unmarked(raw json.RawMessage, kind string) []byte {
	if !bytes.Contains(raw, []byte(`"cache_control"`)) {
		return compact(raw)
	}
	var out bytes.Buffer
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		return compact(raw)
	}
	out.WriteByte('{')
	for decoder.More() {
		name, value, err := nextMember(decoder)
		if err != nil {
			return compact(raw)
		}
		if name == "cache_control" {
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(encode(name))
		out.WriteByte(':')
		if parts, ok := elements(value); ok && name == "content" && kind == "tool_result" {
			out.Write(unmarkedList(parts))
			continue
		}
		out.Write(compact(value))
	}
	out.WriteByte('}')
	return out.Bytes()
}

func unmarkedList(parts []json.RawMessage) []byte {
	out := []byte{'['}
	for i, part := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		if firstByte(part) == '{' {
			part = unmarked(part, "")
		}
		out = append(out, part...)
	}
	return append(out, ']')
}

func nextMember(decoder *json.Decoder) (string, json.RawMessage, error) {
	token, err := decoder.Token()
	if err != nil {
		return "", nil, err
	}
	name, _ := token.(string)
	var value json.RawMessage
	err = decoder.Decode(&value)
	return name, value, err
}

func compact(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return raw
	}
	return out.Bytes()
}

// canonical returns a value with its object members in alphabetical order, so
// that the order of keys does not matter.
func canonical(raw json.RawMessage) []byte {
	if object, ok := objectMembers(raw); ok {
		sorted := make(map[string]json.RawMessage, len(object))
		for name, value := range object {
			sorted[name] = canonical(value)
		}
		return encode(sorted)
	}
	if list, ok := elements(raw); ok {
		sorted := make([]json.RawMessage, len(list))
		for i, value := range list {
			sorted[i] = canonical(value)
		}
		return encode(sorted)
	}
	return compact(raw)
}
