package openairesponses

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Parse reads one item, or a string input.
func (Codec) Parse(raw json.RawMessage) (conversation.Message, error) {
	if text, ok := wire.String(raw); ok {
		return conversation.Message{
			Role: conversation.User, Raw: raw,
			Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}},
		}, nil
	}
	if len(raw) == 0 || raw[0] != '{' {
		return conversation.Message{}, &wire.Invalid{Message: "expected an item: an object with type, or with role and content"}
	}
	read := readItem(raw)
	message := conversation.Message{Raw: raw}
	switch {
	case read.kind == "message" || read.kind == "" && read.role != "":
		parseMessage(&message, read)
	case read.kind == "reasoning":
		message.Role, message.Traits = conversation.Assistant, conversation.IsPart
		if !wire.IsNull(read.encrypted) {
			message.Traits |= conversation.HasOpaque
		}
		message.Blocks = []conversation.Block{{Kind: conversation.Thinking, Text: thoughts(read), Raw: raw}}
	case read.kind == agentMessage:
		parseAgentMessage(&message, read)
	case callOf(read.kind).body != "":
		message.Role, message.Traits = conversation.Assistant, conversation.IsPart
		message.Blocks = []conversation.Block{parseCall(raw, read)}
	case isResult(read.kind):
		message.Role = conversation.Tool
		message.Blocks = []conversation.Block{parseResult(raw, read)}
		if read.kind == "computer_call_output" {
			message.Traits = conversation.HasOpaque // its screenshot can't become text
		}
	default:
		block := conversation.Block{Kind: kindOf(read), ID: read.callID, Name: read.kind, Raw: raw}
		block.IsUnread = block.Kind != conversation.Opaque
		if read.kind == "tool_search_output" {
			block.Tools = append(wire.TextsOf(wire.Get(raw, "tools"), "name"), read.kind)
		}
		message.Role, message.Traits = roleOf(read)
		message.Blocks = []conversation.Block{block}
	}
	return message, nil
}

// item holds the members of an item that the proxy reads.
type item struct {
	kind, role, id, callID, name string
	execution, status            string
	content, summary, encrypted  json.RawMessage
	body, output                 json.RawMessage
	more                         bool // it has members that a plain message lacks
}

func readItem(raw json.RawMessage) item {
	var read item
	for name, value := range wire.Members(raw) {
		switch string(name) {
		case "type":
			read.kind, _ = wire.String(value)
		case "role":
			read.role, _ = wire.String(value)
		case "id":
			read.id, _ = wire.String(value)
		case "call_id":
			read.callID, _ = wire.String(value)
		case "name":
			read.name, _ = wire.String(value)
		case "execution":
			read.execution, _ = wire.String(value)
		case "status":
			read.status, _ = wire.String(value)
		case "content":
			read.content = value
		case "summary":
			read.summary = value
		case "encrypted_content":
			read.encrypted = value
		case "arguments", "input", "action", "operation", "actions":
			if !wire.IsNull(value) {
				read.body = value
			}
		case "output":
			read.output = value
		default:
			read.more = true
		}
	}
	if read.kind == "" && read.role == "" && read.id != "" {
		read.kind = reference // its type is optional
	}
	return read
}

// call is a kind of tool call that the client answers.
type call struct {
	name string // of the tool, for items that don't name one
	body string // the member that holds the arguments
}

// callOf returns the properties of a kind of tool call; the zero value for other items.
func callOf(kind string) call {
	switch kind {
	case "function_call":
		return call{body: "arguments"}
	case "custom_tool_call":
		return call{body: "input"}
	case "local_shell_call":
		return call{name: "local_shell", body: "action"}
	case "shell_call":
		return call{name: "shell", body: "action"}
	case "apply_patch_call":
		return call{name: "apply_patch", body: "operation"}
	case "computer_call":
		return call{name: "computer", body: "action"}
	}
	return call{}
}

// isResult reports whether items of a kind are results of tool calls.
func isResult(kind string) bool {
	before, ok := strings.CutSuffix(kind, "_output")
	return ok && callOf(before).body != ""
}

// kindOf returns the kind of the single block in an item of another kind. An unknown item with a call id is a
// call of the client's tools or the output of one. Such a pair stays together, unchanged or left out.
func kindOf(read item) conversation.Kind {
	switch {
	case read.callID == "" || strings.HasPrefix(read.kind, "tool_search_") || strings.HasPrefix(read.kind, "program"):
		return conversation.Opaque
	case strings.HasSuffix(read.kind, "_output"):
		return conversation.ToolResult
	}
	return conversation.ToolCall
}

// roleOf returns the role of an item of another kind, and the flags that restrict its changes.
func roleOf(read item) (conversation.Role, conversation.Flags) {
	switch kindOf(read) {
	case conversation.ToolResult:
		return conversation.Tool, conversation.HasOpaque
	case conversation.ToolCall:
		return conversation.Assistant, conversation.IsPart | conversation.HasOpaque
	default:
	}
	switch read.kind {
	case "compaction":
		return conversation.Assistant, conversation.IsPinned | conversation.IsBoundary
	case reference:
		if isSpoken(read.id) {
			return conversation.Assistant, conversation.IsPart
		}
		return conversation.Assistant, conversation.IsPinned
	case "compaction_trigger":
		return conversation.User, conversation.IsPinned
	case "additional_tools", "configuration_update":
		return conversation.System, conversation.IsPinned
	case "mcp_approval_response":
		return conversation.Tool, 0
	case "tool_search_output":
		if read.execution == "client" {
			return conversation.Tool, 0
		}
		return conversation.Assistant, conversation.IsPart
	case "program":
		return conversation.Assistant, conversation.IsPart | conversation.HasPending
	case "program_output":
		return conversation.Assistant, conversation.IsPart | conversation.HasSettled
	}
	return conversation.Assistant, conversation.IsPart
}

// parseMessage reads a message item.
func parseMessage(message *conversation.Message, read item) {
	switch read.role {
	case "system", "developer":
		message.Role = conversation.System
		if read.more || !wire.IsPlainText(read.content, []string{"input_text", "text"}) {
			message.Traits = conversation.IsPinned
		}
	case "assistant":
		message.Role, message.Traits = conversation.Assistant, conversation.IsPart
	case "user":
		message.Role = conversation.User
	default:
		message.Role, message.Traits = conversation.User, conversation.IsPinned
		message.Blocks = []conversation.Block{{Kind: conversation.Opaque, Name: "message", Raw: message.Raw}}
		return
	}
	if text, ok := wire.String(read.content); ok {
		message.Blocks = []conversation.Block{{Kind: conversation.Text, Text: text}}
		return
	}
	for _, part := range wire.Elements(read.content) {
		message.Blocks = append(message.Blocks, parsePart(part))
	}
}

// agentMessage is the kind of an item that one of the client's agents sends to another.
const agentMessage = "agent_message"

// parseAgentMessage reads a message from another agent of the client: a task, or the result of one. Codex
// 0.171 sends it with its newest models. A task is sealed, and it is the agent's only description of its
// work. Therefore such a message stays unchanged.
func parseAgentMessage(message *conversation.Message, read item) {
	message.Role, message.Traits = conversation.Assistant, conversation.IsPart
	for _, part := range wire.Elements(read.content) {
		block := parsePart(part)
		if block.Kind != conversation.Text {
			message.Traits |= conversation.IsPinned
		}
		message.Blocks = append(message.Blocks, block)
	}
}

// parsePart reads a part of a message or of a tool's output.
func parsePart(raw json.RawMessage) conversation.Block {
	block := conversation.Block{Raw: raw}
	switch kind := wire.Text(raw, "type"); kind {
	case "input_text", "output_text", "text":
		block.Kind, block.Text = conversation.Text, wire.Text(raw, "text")
	case "input_image", "input_file", "input_audio", "computer_screenshot":
		block.Kind = conversation.Media
		block.Media = []conversation.Attachment{attachment(raw, kind)}
	default:
		block.Kind, block.Name = conversation.Opaque, kind
	}
	return block
}

// parseCall reads a tool call.
func parseCall(raw json.RawMessage, read item) conversation.Block {
	block := conversation.Block{Kind: conversation.ToolCall, ID: read.callID, Name: read.name, Raw: raw}
	if block.Name == "" {
		block.Name = callOf(read.kind).name
	}
	if block.ID == "" {
		block.ID = read.id
	}
	if text, ok := wire.String(read.body); ok {
		block.Text = text
	} else {
		block.Text = string(read.body)
	}
	return block
}

// parseResult reads a tool's output: its texts, one per line, and the other content.
func parseResult(raw json.RawMessage, read item) conversation.Block {
	block := conversation.Block{Kind: conversation.ToolResult, ID: read.callID, Raw: raw}
	if block.ID == "" {
		block.ID = read.id
	}
	block.IsError = read.status == "failed"
	if text, ok := wire.String(read.output); ok {
		block.Text = text
		return block
	}
	parts := read.output
	if read.kind == "computer_call_output" {
		parts = append(append([]byte{'['}, read.output...), ']')
	}
	var texts []string
	for _, part := range wire.Elements(parts) {
		if read.kind == "shell_call_output" {
			text, failed := shellOutput(part)
			texts, block.IsError = append(texts, text), block.IsError || failed
			continue
		}
		parsed := parsePart(part)
		if parsed.Kind == conversation.Text {
			texts = append(texts, parsed.Text)
			continue
		}
		block.Media = append(block.Media, attachment(part, wire.Text(part, "type")))
	}
	block.Text = strings.Join(texts, "\n")
	return block
}

// shellOutput returns a shell command's output and whether it failed.
func shellOutput(part json.RawMessage) (text string, failed bool) {
	text = wire.Text(part, "stdout")
	if complaint := wire.Text(part, "stderr"); complaint != "" {
		text = strings.TrimSuffix(text, "\n") + "\n" + complaint
	}
	return text, hasFailed(wire.Get(part, "outcome"))
}

// hasFailed reports whether a shell command failed.
func hasFailed(outcome json.RawMessage) bool {
	code, _ := wire.Int(wire.Get(outcome, "exit_code"))
	return code != 0 || wire.Text(outcome, "type") == "timeout"
}

// thoughts returns the readable part of a reasoning item.
func thoughts(read item) string {
	var texts []string
	for _, list := range []json.RawMessage{read.summary, read.content} {
		for _, part := range wire.Elements(list) {
			texts = append(texts, wire.Text(part, "text"))
		}
	}
	return strings.Join(texts, "\n")
}

// attachment describes a part without text.
func attachment(raw json.RawMessage, kind string) conversation.Attachment {
	found := conversation.Attachment{Type: kind, Raw: raw}
	switch kind {
	case "input_image", "computer_screenshot":
		found.Type, found.Size = wire.DataURL(wire.Text(raw, "image_url"), kind)
	case "input_file":
		found.Type, found.Size = wire.DataURL(wire.Text(raw, "file_data"), kind)
	case "input_audio":
		sound := wire.Get(raw, kind)
		if format := wire.Text(sound, "format"); format != "" {
			found.Type = "audio/" + format
		}
		found.Size = wire.DecodedSize(wire.Text(sound, "data"))
	}
	return found
}
