package client

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// speaker returns the role of an element of the list and, for an item other than a message, its type. It
// reads as little as possible.
func speaker(element json.RawMessage) (role conversation.Role, kind string) {
	if len(element) > 0 && element[0] == '"' {
		return conversation.User, "" // an input that is a string
	}
	for name, value := range wire.Members(element) {
		switch string(name) {
		case "role":
			return roleOf(value), ""
		case "parts":
			role = conversation.User // without another role
		case "type":
			if kind, _ = wire.String(value); kind != "message" {
				return roleOfItem(kind), kind
			}
		}
	}
	return role, ""
}

// roleOfItem returns the role of an item without one: of a step, or of the contents of an input.
func roleOfItem(kind string) conversation.Role {
	switch kind {
	case "user_input", "text", "image", "audio", "document", "video":
		return conversation.User
	case "model_output":
		return conversation.Assistant
	default:
		return ""
	}
}

func roleOf(value json.RawMessage) conversation.Role {
	switch string(value) {
	case `"user"`:
		return conversation.User
	case `"assistant"`, `"model"`:
		return conversation.Assistant
	case `"system"`, `"developer"`:
		return conversation.System
	case `"tool"`, `"function"`:
		return conversation.Tool
	}
	return ""
}

// texts yields the text blocks of a message with their block indices, as the inside of JSON strings. Tool
// results are excluded.
func texts(element json.RawMessage) iter.Seq2[int, text] {
	if len(element) > 0 && element[0] == '"' {
		return textsOf(element)
	}
	return textsOf(contentOf(element))
}

// contentOf returns a message's content. After leading string members it stops at the content's start and
// returns the rest of the element, so that a long content is not scanned twice.
func contentOf(element json.RawMessage) json.RawMessage {
	rest := bytes.TrimLeft(bytes.TrimPrefix(element, []byte("{")), " \n\r\t")
	for {
		key, value, ok := cutString(rest)
		if !ok || len(value) == 0 || value[0] != ':' {
			return wholeContent(element)
		}
		value = bytes.TrimLeft(value[1:], " \n\r\t")
		if (string(key) == "content" || string(key) == "parts") && len(value) > 0 && value[0] == '[' {
			return value
		}
		if _, rest, ok = cutString(value); !ok || len(rest) == 0 || rest[0] != ',' {
			return wholeContent(element)
		}
		rest = bytes.TrimLeft(rest[1:], " \n\r\t")
	}
}

// wholeContent returns the member of a message that holds its content.
func wholeContent(element json.RawMessage) json.RawMessage {
	if content := wire.Get(element, "content"); content != nil {
		return content
	}
	return wire.Get(element, "parts") // of Gemini
}

// cutString splits raw after a leading JSON string without escapes; ok is false if absent.
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

// lastText returns the last text block of a message; nil if absent.
func lastText(element json.RawMessage) (last text) {
	for _, said := range texts(element) {
		last = said
	}
	return last
}

// textOf returns the text of a block; ok is false for other types.
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

// leadingText returns the text at the start of a message; nil if it starts with another type of block. It
// reads no further.
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

// firstBlock returns a content from its first block on; nil for a string.
func firstBlock(content json.RawMessage) json.RawMessage {
	blocks, isArray := bytes.CutPrefix(content, []byte("["))
	if !isArray {
		return nil
	}
	return bytes.TrimLeft(blocks, " \n\r\t")
}

// blockType returns the type of a message's first block; "" for a string.
func blockType(element json.RawMessage) string {
	for name, value := range wire.Members(firstBlock(contentOf(element))) {
		if string(name) == "type" {
			kind, _ := wire.String(value)
			return kind
		}
	}
	return ""
}

// text is the inside of a JSON string with its escapes, so that its start can be compared without decoding.
type text []byte

// inside returns a JSON string without its quotes.
func inside(raw json.RawMessage) (inner text, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	return text(raw[1 : len(raw)-1]), true
}

// String returns the decoded text.
func (t text) String() string {
	said, _ := wire.String(append(append([]byte{'"'}, t...), '"'))
	return said
}

// starts reports whether the text starts with an ASCII prefix, ignoring leading white space.
func (t text) starts(prefix string) bool {
	_, ok := t.cut(prefix)
	return ok
}

// cut returns the text after an ASCII prefix, ignoring leading white space.
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

// trimmed returns the text without leading white space.
func (t text) trimmed() text {
	for {
		c, size := t.next()
		if size == 0 || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return t
		}
		t = t[size:]
	}
}

// next returns the first ASCII character and its length in bytes; size is 0 at the end and for any other
// character.
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

// injections are the tags around text that clients add to a message.
var injections = [...]string{"system-reminder", "environment_context", "user_instructions", "local-command-caveat", "local-command-stdout"}

// typed returns the text without leading parts in a client's tags; empty if there is no other text.
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

// withoutInjection returns the text after a leading injected part.
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

// isExactly reports whether the text equals want, ignoring surrounding white space.
func (t text) isExactly(want string) bool {
	rest, ok := t.cut(want)
	return ok && len(rest.trimmed()) == 0
}

// contains reports whether the text contains ASCII words.
func (t text) contains(words string) bool {
	return strings.Contains(t.String(), words)
}

// containsRaw reports whether the text contains words, without decoding escapes.
func (t text) containsRaw(words string) bool { return bytes.Contains(t, []byte(words)) }
