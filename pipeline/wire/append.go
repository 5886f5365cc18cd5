package wire

import (
	"encoding/json"
	"strings"
)

// AppendElements returns an array with elements appended. The array's own bytes stay unchanged.
func AppendElements(array json.RawMessage, elements ...json.RawMessage) json.RawMessage {
	size := len(array)
	for _, element := range elements {
		size += len(element) + 1
	}
	last, some := 1, false
	for _, value := range spans(array, '[', ']') {
		last, some = value.end, true
	}
	out := append(make([]byte, 0, size), array[:last]...)
	for _, element := range elements {
		if some {
			out = append(out, ',')
		}
		out, some = append(out, element...), true
	}
	return append(out, array[last:]...)
}

// AppendBlocks returns a message's content, a string or an array, as an array with texts appended as blocks.
// A string becomes a block unless it is blank. block encodes a quoted text as a block.
func AppendBlocks(content json.RawMessage, texts []string, block func(quoted json.RawMessage) json.RawMessage) (json.RawMessage, error) {
	blocks := make([]json.RawMessage, 0, len(texts)+1)
	switch {
	case len(content) > 0 && content[0] == '"':
		if text, _ := String(content); strings.TrimSpace(text) != "" {
			blocks = append(blocks, block(content))
		}
		content = json.RawMessage("[]")
	case len(content) == 0 || content[0] != '[':
		return nil, &Invalid{Member: "content", Message: "expected a string or an array"}
	}
	for _, text := range texts {
		blocks = append(blocks, block(Quote(text)))
	}
	return AppendElements(content, blocks...), nil
}

// textBlock returns a block of a type with a quoted text.
func textBlock(kind string, quoted json.RawMessage) json.RawMessage {
	out := append(make([]byte, 0, len(quoted)+32), `{"type":"`+kind+`","text":`...)
	return append(append(out, quoted...), '}')
}

// TextBlock returns a function that encodes blocks of a type: "text", "input_text".
func TextBlock(kind string) func(quoted json.RawMessage) json.RawMessage {
	return func(quoted json.RawMessage) json.RawMessage { return textBlock(kind, quoted) }
}

// LeadingMessages returns a message for each text, to be placed after the leading system or developer
// messages of an OpenAI body's list. The messages have the role of the last of these, or the given role
// without any.
func LeadingMessages(body *Envelope, texts []string, role string) Instruction {
	said := Instruction{}
	for said.Behind < body.Len() {
		own := Text(body.Element(said.Behind), "role")
		if own != "system" && own != "developer" {
			break
		}
		role = own
		said.Behind++
	}
	for _, text := range texts {
		if len(said.Messages) > 0 {
			said.Messages = append(said.Messages, ',')
		}
		said.Messages = append(AppendQuote(append(said.Messages, `{"role":`...), role), `,"content":`...)
		said.Messages = append(AppendQuote(said.Messages, text), '}')
	}
	return said
}
