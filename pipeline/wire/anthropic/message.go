package anthropic

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Parse reads one message.
func (Codec) Parse(raw json.RawMessage) (conversation.Message, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return conversation.Message{}, &wire.Invalid{Message: "expected a message: an object with role and content"}
	}
	message := conversation.Message{Raw: raw}
	var role string
	var content json.RawMessage
	for name, value := range wire.Members(raw) {
		switch string(name) {
		case "role":
			role, _ = wire.String(value)
		case "content":
			content = value
		}
	}
	message.Role = conversation.Role(role)
	switch message.Role {
	case conversation.User, conversation.Assistant:
	case conversation.System:
		message.Traits |= conversation.IsPinned
	default:
		message.Role, content = conversation.User, nil
		message.Traits |= conversation.IsPinned
	}
	parseContent(&message, content)
	return message, nil
}

// parseContent reads a message's content; what has none is opaque.
func parseContent(message *conversation.Message, content json.RawMessage) {
	switch {
	case len(content) > 0 && content[0] == '"':
		text, _ := wire.String(content)
		message.Blocks = []conversation.Block{{Kind: conversation.Text, Text: text}}
	case len(content) > 0 && content[0] == '[':
		var served serverCalls
		for _, raw := range wire.Elements(content) {
			block, traits := parseBlock(raw)
			message.Blocks = append(message.Blocks, block)
			message.Traits |= traits
			message.Markers = blockMarkers(message.Markers, raw)
			served.note(&block)
		}
		if message.Role == conversation.Assistant {
			message.Traits |= served.traits()
		}
	default:
		message.Blocks = []conversation.Block{{Kind: conversation.Opaque, Raw: message.Raw}}
	}
}

// wireBlock holds the members of a content block that the proxy reads.
type wireBlock struct {
	kind, id, name             string
	text, thinking, input      json.RawMessage
	toolUseID, content, source json.RawMessage
	isError                    bool
}

func readBlock(raw json.RawMessage) wireBlock {
	var block wireBlock
	for name, value := range wire.Members(raw) {
		switch string(name) {
		case "type":
			block.kind, _ = wire.String(value)
		case "id":
			block.id, _ = wire.String(value)
		case "name":
			block.name, _ = wire.String(value)
		case "text":
			block.text = value
		case "thinking":
			block.thinking = value
		case "input":
			block.input = value
		case "tool_use_id":
			block.toolUseID = value
		case "content":
			block.content = value
		case "source":
			block.source = value
		case "is_error":
			block.isError = string(value) == "true"
		}
	}
	return block
}

// outline returns what a content block is, without what it says.
func outline(raw json.RawMessage, read wireBlock) conversation.Block {
	block := conversation.Block{Raw: raw}
	switch read.kind {
	case "text":
		block.Kind = conversation.Text
	case "thinking", "redacted_thinking":
		block.Kind = conversation.Thinking
	case "tool_use":
		block.Kind, block.ID, block.Name = conversation.ToolCall, read.id, read.name
	case "tool_result":
		block.Kind, block.IsError = conversation.ToolResult, read.isError
		block.ID, _ = wire.String(read.toolUseID)
	case "image", "document", "search_result":
		block.Kind = conversation.Media
	default:
		block.Kind, block.Name = conversation.Opaque, read.kind
	}
	return block
}

// parseBlock reads a content block and what it means for its message.
func parseBlock(raw json.RawMessage) (block conversation.Block, traits conversation.Flags) {
	read := readBlock(raw)
	block = outline(raw, read)
	switch block.Kind {
	case conversation.Text:
		block.Text, _ = wire.String(read.text)
	case conversation.Thinking:
		if read.kind == "redacted_thinking" {
			traits = conversation.HasOpaque
		} else {
			block.Text, _ = wire.String(read.thinking)
		}
	case conversation.ToolCall:
		block.Text = string(read.input)
	case conversation.ToolResult:
		block.Text, block.Media = parseResult(read.content)
		if loadsTools(block.Media) {
			traits = conversation.LoadsTools
		}
	case conversation.Media:
		block.Media = []conversation.Attachment{attachment(raw, read)}
	case conversation.Opaque:
		switch read.kind {
		case "compaction":
			traits = conversation.IsPinned
		case "tool_search_tool_result", "mcp_tool_listing":
			traits = conversation.LoadsTools
		}
	}
	return block, traits
}

// loadsTools reports whether a result names tools that its client had deferred:
// the provider shows them to the model from there on.
func loadsTools(media []conversation.Attachment) bool {
	for _, attachment := range media {
		if attachment.Type == "tool_reference" {
			return true
		}
	}
	return false
}

// serverCalls are the calls of a message that the provider answers itself, and
// what it answered.
type serverCalls struct {
	open      map[string]int // how many calls of an id have no answer so far; none is 0
	isSettled bool           // there is an answer to a call of an earlier message
}

// note takes the message's next block.
func (c *serverCalls) note(block *conversation.Block) {
	if block.Kind != conversation.Opaque {
		return
	}
	switch {
	case block.Name == "server_tool_use" || block.Name == "mcp_tool_use":
		if c.open == nil {
			c.open = make(map[string]int)
		}
		c.open[wire.Text(block.Raw, "id")]++
	case strings.HasSuffix(block.Name, "_tool_result"):
		id := wire.Text(block.Raw, "tool_use_id")
		switch c.open[id] {
		case 0:
			c.isSettled = true
		case 1:
			delete(c.open, id)
		default:
			c.open[id]--
		}
	}
}

// traits returns what the calls mean for the message.
func (c *serverCalls) traits() (traits conversation.Flags) {
	if len(c.open) > 0 {
		traits |= conversation.HasPending
	}
	if c.isSettled {
		traits |= conversation.HasSettled
	}
	return traits
}

// parseResult reads what a tool returned: its texts, a line each, and the rest.
func parseResult(content json.RawMessage) (text string, media []conversation.Attachment) {
	if text, ok := wire.String(content); ok {
		return text, nil
	}
	var texts []string
	for _, part := range wire.Elements(content) {
		read := readBlock(part)
		if read.kind == "text" {
			text, _ := wire.String(read.text)
			texts = append(texts, text)
			continue
		}
		media = append(media, attachment(part, read))
	}
	return strings.Join(texts, "\n"), media
}

// attachment describes a block that holds no plain text.
func attachment(raw json.RawMessage, read wireBlock) conversation.Attachment {
	found := conversation.Attachment{Type: read.kind, Raw: raw}
	if mediaType := wire.Text(read.source, "media_type"); mediaType != "" {
		found.Type = mediaType
	}
	data := wire.Get(read.source, "data")
	if len(data) < 2 {
		return found
	}
	found.Size = len(data) - 2
	if wire.Text(read.source, "type") == "base64" {
		found.Size = wire.DecodedSize(string(data[1 : len(data)-1]))
	}
	return found
}
