package client

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// speaker returns who speaks in an element of the list and, for an item that is
// no message, its type. It reads no further than it must.
func speaker(element json.RawMessage) (role conversation.Role, kind string) {
	if len(element) > 0 && element[0] == '"' {
		return conversation.User, "" // an input that is a string
	}
	for name, value := range wire.Members(element) {
		switch string(name) {
		case "role":
			return roleOf(value), ""
		case "type":
			if string(value) != `"message"` {
				kind, _ = wire.String(value)
				return "", kind
			}
		}
	}
	return "", ""
}

func roleOf(value json.RawMessage) conversation.Role {
	switch string(value) {
	case `"user"`:
		return conversation.User
	case `"assistant"`:
		return conversation.Assistant
	case `"system"`, `"developer"`:
		return conversation.System
	case `"tool"`, `"function"`:
		return conversation.Tool
	}
	return ""
}

// texts yields the text blocks of a message with their indices among its blocks,
// each as the inside of a JSON string. What a tool returned is not one of them.
func texts(element json.RawMessage) iter.Seq2[int, text] {
	if len(element) > 0 && element[0] == '"' {
		return textsOf(element)
	}
	return textsOf(contentOf(element))
}

// contentOf returns a message's content. Behind members that are strings it reads
// no further than to its start and returns all that follows, so that a long
// content is not passed over before it is read.
func contentOf(element json.RawMessage) json.RawMessage {
	rest := bytes.TrimLeft(bytes.TrimPrefix(element, []byte("{")), " \n\r\t")
	for {
		key, value, ok := cutString(rest)
		if !ok || len(value) == 0 || value[0] != ':' {
			return wire.Get(element, "content")
		}
		value = bytes.TrimLeft(value[1:], " \n\r\t")
		if string(key) == "content" && len(value) > 0 && value[0] == '[' {
			return value
		}
		if _, rest, ok = cutString(value); !ok || len(rest) == 0 || rest[0] != ',' {
			return wire.Get(element, "content")
		}
		rest = bytes.TrimLeft(rest[1:], " \n\r\t")
	}
}

// cutString cuts the JSON string without escapes that raw starts with from what
// follows it; ok is false if it does not exist.
func cutString(raw json.RawMessage) (inner, rest json.RawMessage, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return nil, nil, false
	}
	end := bytes.IndexByte(raw[1:], '"') + 1
	if end < 1 || bytes.IndexByte(raw[:end], '\\') >= 0 {
		return nil, nil, false
	}
	return raw[1:end], bytes.TrimLeft(raw[end+1:], " \n\r\t"), true
}

// textsOf yields the texts of a content: a string or an array of blocks.
func textsOf(content json.RawMessage) iter.Seq2[int, text] {
	return func(yield func(int, text) bool) {
		if inner, ok := inside(content); ok {
			yield(0, inner)
			return
		}
		for i, block := range wire.Elements(content) {
			if inner, ok := textOf(block); ok && !yield(i, inner) {
				return
			}
		}
	}
}

// lastText returns the last text block of a message; nothing if it has none.
func lastText(element json.RawMessage) (last text) {
	for _, said := range texts(element) {
		last = said
	}
	return last
}

// textOf returns the text of a block; ok is false if it is of another type.
func textOf(block json.RawMessage) (inner text, ok bool) {
	for name, value := range wire.Members(block) {
		switch string(name) {
		case "type":
			switch string(value) {
			case `"text"`, `"input_text"`, `"output_text"`:
			default:
				return nil, false
			}
		case "text":
			return inside(value)
		}
	}
	return nil, false
}

// leadingText returns the text that a message starts with; nothing if it starts
// with a block of another type. It reads no further.
func leadingText(element json.RawMessage) text {
	if len(element) > 0 && element[0] == '{' {
		element = contentOf(element)
	}
	if inner, ok := inside(element); ok {
		return inner
	}
	inner, _ := textOf(firstBlock(element))
	return inner
}

// firstBlock returns the first block of a content and all that follows it; nothing
// for a string.
func firstBlock(content json.RawMessage) json.RawMessage {
	blocks, isArray := bytes.CutPrefix(content, []byte("["))
	if !isArray {
		return nil
	}
	return bytes.TrimLeft(blocks, " \n\r\t")
}

// blockType returns the type of a message's first block; empty for a string.
func blockType(element json.RawMessage) string {
	for name, value := range wire.Members(firstBlock(contentOf(element))) {
		if string(name) == "type" {
			kind, _ := wire.String(value)
			return kind
		}
	}
	return ""
}

// text is the inside of a JSON string, its escapes as they are, so that nothing
// is decoded to look at its start.
type text []byte

// inside returns a JSON string without its quotes.
func inside(raw json.RawMessage) (inner text, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	return text(raw[1 : len(raw)-1]), true
}

// String returns what the text says.
func (t text) String() string {
	said, _ := wire.String(append(append([]byte{'"'}, t...), '"'))
	return said
}

// starts reports whether the text, white space before it aside, starts with a
// prefix of ASCII.
func (t text) starts(prefix string) bool {
	_, ok := t.cut(prefix)
	return ok
}

// cut returns what follows a prefix of ASCII, white space before it aside.
func (t text) cut(prefix string) (rest text, ok bool) {
	rest = t.trimmed()
	for i := range len(prefix) {
		c, size := rest.next()
		if size == 0 || c != prefix[i] {
			return nil, false
		}
		rest = rest[size:]
	}
	return rest, true
}

// trimmed returns the text without the white space before it.
func (t text) trimmed() text {
	for {
		c, size := t.next()
		if size == 0 || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return t
		}
		t = t[size:]
	}
}

// next returns the first character, as far as it is ASCII, and how many bytes it
// takes; size is 0 at the end and for any other character.
func (t text) next() (c byte, size int) {
	if len(t) == 0 || t[0] >= 0x80 {
		return 0, 0
	}
	if t[0] != '\\' {
		return t[0], 1
	}
	if len(t) < 2 {
		return 0, 0
	}
	size = 2
	if t[1] == 'u' {
		size = 6
	}
	if len(t) < size {
		return 0, 0
	}
	var room [4]byte
	decoded, ok := wire.AppendText(room[:0], append(append([]byte{'"'}, t[:size]...), '"'))
	if !ok || len(decoded) != 1 {
		return 0, 0
	}
	return decoded[0], size
}

// injections are the tags in which clients wrap what they add to a message on
// their own.
var injections = [...]string{"system-reminder", "environment_context", "user_instructions", "local-command-caveat", "local-command-stdout"}

// typed returns the text without the parts before it that a client added in tags
// of its own; nothing if nothing else is in it.
func (t text) typed() text {
	for {
		t = t.trimmed()
		if len(t) == 0 || t[0] != '<' && t[0] != '\\' {
			return t
		}
		rest, ok := t.withoutInjection()
		if !ok {
			return t
		}
		t = rest
	}
}

// withoutInjection returns what follows the injected part that the text starts with.
func (t text) withoutInjection() (rest text, ok bool) {
	for _, tag := range injections {
		inner, ok := t.cut("<" + tag + ">")
		if !ok {
			continue
		}
		for _, closing := range [...]string{"</" + tag + ">", `\u003c/` + tag + `\u003e`} {
			if i := bytes.Index(inner, []byte(closing)); i >= 0 {
				return inner[i+len(closing):], true
			}
		}
		return t, false
	}
	return t, false
}

// isExactly reports whether the text says want and nothing else.
func (t text) isExactly(want string) bool {
	rest, ok := t.cut(want)
	return ok && len(rest.trimmed()) == 0
}

// contains reports whether the text holds words, which are ASCII.
func (t text) contains(words string) bool {
	return strings.Contains(t.String(), words)
}

// containsRaw reports whether the text holds words as they stand, escapes not
// decoded.
func (t text) containsRaw(words string) bool { return bytes.Contains(t, []byte(words)) }
