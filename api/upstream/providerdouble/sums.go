package providerdouble

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
)

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
