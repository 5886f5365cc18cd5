package semanticcache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// errAmbiguous means that a body can be read in more than one way.
var errAmbiguous = errors.New("ambiguous body")

// object is a JSON object split into its members.
type object map[string]json.RawMessage

// readObject splits an object. It returns errAmbiguous for a duplicate member or for text that is
// not Unicode, because the provider could read them differently.
func readObject(raw json.RawMessage) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errAmbiguous
	}
	members := object{}
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err != nil || !isName || decoder.Decode(&value) != nil {
			return nil, errAmbiguous
		}
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("%w: %q stands twice", errAmbiguous, name)
		}
		members[name] = value
	}
	return members, nil
}

// text returns a string member; false if it is missing or not a string.
func (o object) text(name string) (string, bool) {
	var text string
	raw, has := o[name]
	if !has || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, true
}

// appendCanonical appends a value without irrelevant differences: white space, the order of
// members, how text is escaped, and cache markers. Numbers stay as written. It returns errAmbiguous
// for a value with two readings.
func appendCanonical(out []byte, raw json.RawMessage) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, errAmbiguous
	}
	switch raw[0] {
	case '{':
		members, err := readObject(raw)
		if err != nil {
			return nil, err
		}
		return members.appendCanonical(out)
	case '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			return nil, errAmbiguous
		}
		out = append(out, '[')
		for i, element := range elements {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = appendCanonical(out, element); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil || !isPlain(raw, text) {
			return nil, errAmbiguous
		}
		return appendText(out, text), nil
	default:
		return append(out, raw...), nil
	}
}

// appendCanonical appends the object, its members in the order of their names.
func (o object) appendCanonical(out []byte) ([]byte, error) {
	out = append(out, '{')
	first := true
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if name == "cache_control" && isMarker(o[name]) {
			continue // a hint for the provider's cache, not a part of the question
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(appendText(out, name), ':')
		var err error
		if out, err = appendCanonical(out, o[name]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// isMarker reports whether a member called cache_control is a cache marker and not, for example, a
// tool's parameter of that name.
func isMarker(raw json.RawMessage) bool {
	marker, err := readObject(raw)
	if err != nil {
		return false
	}
	kind, _ := marker.text("type")
	return kind == "ephemeral"
}

func appendText(out []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return append(out, quoted...)
}

// isPlain reports whether a string was decoded without loss: a half of a surrogate pair or a byte
// that is not UTF-8 would have become U+FFFD.
func isPlain(raw json.RawMessage, text string) bool {
	return utf8.Valid(raw) && !strings.ContainsRune(text, utf8.RuneError)
}
