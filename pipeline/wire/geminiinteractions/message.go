package geminiinteractions

import (
	"cmp"
	"encoding/json"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// The types of steps that the proxy reads.
const (
	userInput      = "user_input"
	modelOutput    = "model_output"
	thought        = "thought"
	functionCall   = "function_call"
	functionResult = "function_result"
)

// step holds the members of a step that the proxy reads.
type step struct {
	kind, id, callID, name string
	content, summary       json.RawMessage
	arguments, result      json.RawMessage
	isError, isSigned      bool
}

func readStep(raw json.RawMessage) step {
	var read step
	for name, value := range wire.Members(raw) {
		switch string(name) {
		case "type":
			read.kind, _ = wire.String(value)
		case "id":
			read.id, _ = wire.String(value)
		case "call_id":
			read.callID, _ = wire.String(value)
		case "name":
			read.name, _ = wire.String(value)
		case "content":
			read.content = value
		case "summary":
			read.summary = value
		case "arguments":
			read.arguments = value
		case "result":
			read.result = value
		case "is_error":
			read.isError = string(value) == "true"
		case "signature":
			read.isSigned = !wire.IsNull(value)
		}
	}
	return read
}

// Parse reads one step, one content of an input without steps, or an input that is a string.
func (Codec) Parse(raw json.RawMessage) (conversation.Message, error) {
	if said, ok := wire.String(raw); ok {
		return conversation.Message{
			Role: conversation.User, Raw: raw,
			Blocks: []conversation.Block{{Kind: conversation.Text, Text: said}},
		}, nil
	}
	if len(raw) == 0 || raw[0] != '{' {
		return conversation.Message{}, &wire.Invalid{Message: "expected a step: an object with type"}
	}
	read := readStep(raw)
	message := conversation.Message{Role: conversation.Assistant, Traits: conversation.IsPart, Raw: raw}
	if read.isSigned {
		message.Traits |= conversation.HasOpaque
	}
	switch {
	case read.kind == userInput:
		message.Role, message.Traits, message.Blocks = conversation.User, 0, contents(read.content)
	case read.kind == modelOutput:
		message.Blocks = contents(read.content)
	case read.kind == thought:
		message.Blocks = []conversation.Block{{Kind: conversation.Thinking, Text: strings.Join(wire.TextsOf(read.summary, "text"), "\n"), Raw: raw}}
	case read.kind == functionCall:
		message.Blocks = []conversation.Block{{Kind: conversation.ToolCall, ID: read.id, Name: read.name, Text: string(read.arguments), Raw: raw}}
	case read.kind == functionResult:
		message.Role, message.Traits = conversation.Tool, 0
		message.Blocks = []conversation.Block{read.toolResult(raw)}
	case isContent(read.kind):
		message.Role, message.Traits, message.Blocks = conversation.User, 0, []conversation.Block{readContent(raw)}
	case read.kind == "":
		message.Role, message.Traits = conversation.User, conversation.IsPinned
		message.Blocks = []conversation.Block{{Kind: conversation.Opaque, Name: "step", Raw: raw}}
	default: // of a tool that Google runs
		message.Blocks = []conversation.Block{{Kind: conversation.Opaque, ID: cmp.Or(read.callID, read.id), Name: read.kind, Raw: raw}}
	}
	return message, nil
}

// isContent reports whether a type is one of a content.
func isContent(kind string) bool {
	switch kind {
	case "text", "image", "audio", "document", "video":
		return true
	default:
		return false
	}
}

// contents reads the contents of a step.
func contents(raw json.RawMessage) []conversation.Block {
	if said, ok := wire.String(raw); ok {
		return []conversation.Block{{Kind: conversation.Text, Text: said}}
	}
	var blocks []conversation.Block
	for _, content := range wire.Elements(raw) {
		blocks = append(blocks, readContent(content))
	}
	return blocks
}

// readContent reads one content.
func readContent(raw json.RawMessage) conversation.Block {
	block := conversation.Block{Raw: raw}
	switch kind := wire.Text(raw, "type"); {
	case kind == "text":
		block.Kind, block.Text = conversation.Text, wire.Text(raw, "text")
	case isContent(kind):
		block.Kind = conversation.Media
		block.Media = []conversation.Attachment{{
			Type: cmp.Or(wire.Text(raw, "mime_type"), kind), Size: wire.DecodedSize(wire.Text(raw, "data")), Raw: raw,
		}}
	default:
		block.Kind, block.Name = conversation.Opaque, kind
	}
	return block
}

// toolResult reads the result of a function: a string, contents, an object with contents, or any other value.
func (s step) toolResult(raw json.RawMessage) conversation.Block {
	block := conversation.Block{Kind: conversation.ToolResult, ID: s.callID, IsError: s.isError, Raw: raw}
	if said, ok := wire.String(s.result); ok {
		block.Text = said
		return block
	}
	list := s.result
	if inside := wire.Get(list, "content"); inside != nil {
		list = inside
	}
	if len(list) == 0 || list[0] != '[' {
		block.Text = wire.Sorted(s.result)
		return block
	}
	var texts []string
	for _, inner := range contents(list) {
		if inner.Kind == conversation.Text {
			texts = append(texts, inner.Text)
			continue
		}
		block.Media = append(block.Media, inner.Media...)
	}
	block.Text = strings.Join(texts, "\n")
	return block
}
