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
	more := false // members that a plain message lacks
	for name, value := range wire.Members(raw) {
		switch string(name) {
		case "role":
			role, _ = wire.String(value)
		case "content":
			content = value
		default:
			more = true
		}
	}
	message.Role = conversation.Role(role)
	switch message.Role {
	case conversation.User, conversation.Assistant:
	case conversation.System:
		if more || !wire.IsPlainText(content, []string{"text"}, "cache_control") {
			message.Traits |= conversation.IsPinned
		}
	default:
		message.Role, content = conversation.User, nil
		message.Traits |= conversation.IsPinned
	}
	parseContent(&message, content)
	return message, nil
}

// parseContent reads a message's content. Missing content is opaque.
func parseContent(message *conversation.Message, content json.RawMessage) {
	switch {
	case len(content) > 0 && content[0] == '"':
		text, _ := wire.String(content)
		message.Blocks = []conversation.Block{{Kind: conversation.Text, Text: text}}
	case len(content) > 0 && content[0] == '[':
		var served serverCalls
		for _, raw := range wire.Elements(content) {
			block, traits := parseBlock(raw)
			message.Traits |= traits | join(message.Role, &block)
			message.Blocks = append(message.Blocks, block)
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

// outline returns a content block's kind, id and name, without its content.
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
		if block.ID, _ = wire.String(read.toolUseID); block.ID == "" {
			block.ID = read.id
		}
	}
	return block
}

// join turns two related unknown blocks into a call and its result: a call of the client's tools, and the
// answer to it in a user message. They stay together, unchanged or left out.
func join(role conversation.Role, block *conversation.Block) (traits conversation.Flags) {
	isServer := strings.HasPrefix(block.Name, "server_") || strings.HasPrefix(block.Name, "mcp_")
	switch {
	case block.Kind != conversation.Opaque || block.ID == "":
	case role == conversation.User && wire.Get(block.Raw, "tool_use_id") != nil:
		block.Kind, block.IsUnread, traits = conversation.ToolResult, true, conversation.HasOpaque
	case role == conversation.Assistant && strings.HasSuffix(block.Name, "_use") && !isServer:
		block.Kind, block.IsUnread, traits = conversation.ToolCall, true, conversation.HasOpaque
	}
	return traits
}

// parseBlock reads a content block and its flags for the message.
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
		block.Tools = loaded(block.Media)
	case conversation.Media:
		block.Media = []conversation.Attachment{attachment(raw, read)}
	case conversation.Opaque:
		switch read.kind {
		case "compaction":
			traits = conversation.IsPinned | conversation.IsBoundary
		case "tool_search_tool_result":
			block.Tools = append(wire.TextsOf(wire.Get(read.content, "tool_references"), "tool_name"), read.kind)
		case "mcp_tool_listing":
			block.Tools = []string{read.kind + " " + wire.Text(raw, "mcp_server_name")}
		}
	}
	return block, traits
}

// loaded returns the deferred tools that a result names. The provider shows them to the model from there on.
func loaded(media []conversation.Attachment) (tools []string) {
	for _, attachment := range media {
		if attachment.Type == "tool_reference" {
			tools = append(tools, wire.Text(attachment.Raw, "tool_name"))
		}
	}
	return tools
}

// serverCalls are the calls of a message that the provider answers, and its answers.
type serverCalls struct {
	open      map[string]int // number of unanswered calls by id; zero counts are deleted
	isSettled bool           // it has an answer to a call of an earlier message
}

// note adds the message's next block.
func (c *serverCalls) note(block *conversation.Block) {
	if block.Kind != conversation.Opaque {
		return
	}
	switch {
	case block.Name == "server_tool_use" || block.Name == "mcp_tool_use":
		if c.open == nil {
			c.open = make(map[string]int)
		}
		c.open[block.ID]++
	case strings.HasSuffix(block.Name, "_tool_result"):
		switch c.open[block.ID] {
		case 0:
			c.isSettled = true
		case 1:
			delete(c.open, block.ID)
		default:
			c.open[block.ID]--
		}
	}
}

// traits returns the message's flags from its calls.
func (c *serverCalls) traits() (traits conversation.Flags) {
	if len(c.open) > 0 {
		traits |= conversation.HasPending
	}
	if c.isSettled {
		traits |= conversation.HasSettled
	}
	return traits
}

// parseResult reads a tool's output: its texts, one per line, and the other content.
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

// attachment describes a block other than plain text.
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
