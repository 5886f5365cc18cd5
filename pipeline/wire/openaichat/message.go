package openaichat

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// wireMessage holds the members of a message that the proxy reads.
type wireMessage struct {
	role, toolCallID   string
	content, refusal   json.RawMessage
	reasoning, details json.RawMessage
	audio              json.RawMessage
	toolCalls          json.RawMessage
	functionCall       json.RawMessage
	reasoningMember    string
	more               bool // it has members that a plain message lacks
}

func readMessage(raw json.RawMessage) wireMessage {
	var message wireMessage
	for name, value := range wire.Members(raw) {
		if wire.IsNull(value) {
			continue
		}
		switch string(name) {
		case "role":
			message.role, _ = wire.String(value)
		case "name": // a plain message may have one
		case "tool_call_id":
			message.toolCallID, _ = wire.String(value)
		case "content":
			message.content = value
		case "refusal":
			message.refusal = value
		case "reasoning_content", "reasoning":
			message.reasoning, message.reasoningMember = value, string(name)
		case "reasoning_details":
			message.details = value
		case "audio":
			message.audio = value
		case "tool_calls":
			message.toolCalls = value
		case "function_call":
			message.functionCall = value
		default:
			message.more = true
		}
	}
	return message
}

// slot is a block and its place in the message.
type slot struct {
	block  conversation.Block
	member string
	index  int // in the member's array; -1 if the member is the block
}

// Parse reads one message.
func (Codec) Parse(raw json.RawMessage) (conversation.Message, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return conversation.Message{}, &wire.Invalid{Message: "expected a message: an object with role and content"}
	}
	read := readMessage(raw)
	message := conversation.Message{Raw: raw}
	switch read.role {
	case "system", "developer":
		message.Role = conversation.System
		if read.more || !wire.IsPlainText(read.content, []string{"text"}, "cache_control") {
			message.Traits = conversation.IsPinned
		}
	case "user":
		message.Role = conversation.User
	case "assistant":
		message.Role = conversation.Assistant
	case "tool", "function":
		message.Role = conversation.Tool
	default:
		message.Role, message.Traits = conversation.User, conversation.IsPinned
		message.Blocks = []conversation.Block{{Kind: conversation.Opaque, Raw: raw}}
		return message, nil
	}
	if message.Role == conversation.Tool {
		message.Blocks = []conversation.Block{parseResult(raw, read)}
		return message, nil
	}
	slots := slotsOf(read)
	message.Blocks = make([]conversation.Block, len(slots))
	for i := range slots {
		message.Blocks[i] = slots[i].block
	}
	if read.details != nil {
		message.Traits |= conversation.HasOpaque
	}
	return message, nil
}

// parseResult reads a tool's message: its texts, one per line, and the other content.
func parseResult(raw json.RawMessage, read wireMessage) conversation.Block {
	block := conversation.Block{Kind: conversation.ToolResult, ID: read.toolCallID, Raw: raw}
	if text, ok := wire.String(read.content); ok {
		block.Text = text
		return block
	}
	var texts []string
	for _, part := range wire.Elements(read.content) {
		parsed := parsePart(part)
		if parsed.Kind == conversation.Text {
			texts = append(texts, parsed.Text)
			continue
		}
		block.Media = append(block.Media, attachment(part))
	}
	block.Text = strings.Join(texts, "\n")
	return block
}

// slotsOf returns the blocks of a message in order.
func slotsOf(read wireMessage) []slot {
	var slots []slot
	for _, thought := range []struct {
		member string
		raw    json.RawMessage
	}{{read.reasoningMember, read.reasoning}, {"reasoning_details", read.details}} {
		if thought.raw != nil {
			text, _ := wire.String(thought.raw)
			slots = append(slots, slot{conversation.Block{Kind: conversation.Thinking, Text: text, Raw: thought.raw}, thought.member, -1})
		}
	}
	if text, ok := wire.String(read.content); ok {
		if text != "" {
			slots = append(slots, slot{conversation.Block{Kind: conversation.Text, Text: text}, "content", -1})
		}
	} else {
		for i, part := range wire.Elements(read.content) {
			slots = append(slots, slot{parsePart(part), "content", i})
		}
	}
	for _, whole := range []struct {
		member string
		raw    json.RawMessage
	}{{"refusal", read.refusal}, {"audio", read.audio}} {
		if whole.raw != nil {
			slots = append(slots, slot{conversation.Block{Kind: conversation.Opaque, Name: whole.member, Raw: whole.raw}, whole.member, -1})
		}
	}
	for i, call := range wire.Elements(read.toolCalls) {
		slots = append(slots, slot{parseCall(call), "tool_calls", i})
	}
	if read.functionCall != nil {
		call := conversation.Block{Kind: conversation.ToolCall, Name: wire.Text(read.functionCall, "name"), Raw: read.functionCall}
		call.Text = wire.Text(read.functionCall, "arguments")
		slots = append(slots, slot{call, "function_call", -1})
	}
	return slots
}

// parsePart reads a part of a message's content.
func parsePart(raw json.RawMessage) conversation.Block {
	block := conversation.Block{Raw: raw}
	switch kind := wire.Text(raw, "type"); kind {
	case "text":
		block.Kind, block.Text = conversation.Text, wire.Text(raw, "text")
	case "image_url", "input_audio", "file":
		block.Kind = conversation.Media
		block.Media = []conversation.Attachment{attachment(raw)}
	default:
		block.Kind, block.Name = conversation.Opaque, kind
	}
	return block
}

// parseCall reads a tool call, of a function or a custom tool.
func parseCall(raw json.RawMessage) conversation.Block {
	block := conversation.Block{Kind: conversation.ToolCall, ID: wire.Text(raw, "id"), Raw: raw}
	if custom := wire.Get(raw, "custom"); custom != nil {
		block.Name, block.Text = wire.Text(custom, "name"), wire.Text(custom, "input")
		return block
	}
	function := wire.Get(raw, "function")
	block.Name, block.Text = wire.Text(function, "name"), wire.Text(function, "arguments")
	return block
}

// attachment describes a part without text.
func attachment(raw json.RawMessage) conversation.Attachment {
	kind := wire.Text(raw, "type")
	found := conversation.Attachment{Type: kind, Raw: raw}
	switch kind {
	case "image_url":
		found.Type, found.Size = wire.DataURL(wire.Text(wire.Get(raw, kind), "url"), kind)
	case "input_audio":
		sound := wire.Get(raw, kind)
		if format := wire.Text(sound, "format"); format != "" {
			found.Type = "audio/" + format
		}
		found.Size = wire.DecodedSize(wire.Text(sound, "data"))
	case "file":
		found.Type, found.Size = wire.DataURL(wire.Text(wire.Get(raw, kind), "file_data"), kind)
	}
	return found
}
