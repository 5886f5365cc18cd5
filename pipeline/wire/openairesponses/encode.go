package openairesponses

import (
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Encode returns an item's bytes, unchanged if the item is.
func (Codec) Encode(message conversation.Message) (json.RawMessage, error) {
	if message.Raw == nil {
		return encodeNew(message)
	}
	if !message.Changed {
		return message.Raw, nil
	}
	read := readItem(message.Raw)
	switch {
	case message.Raw[0] == '"':
		return encodeNew(message)
	case read.kind == "message" || read.kind == "" && read.role != "":
		return encodeMessage(message, read, message.Role)
	case read.kind == agentMessage:
		return encodeMessage(message, read, conversation.User) // it is input
	case len(message.Blocks) != 1:
		return nil, wire.ErrFixed
	case message.Blocks[0].Raw != nil:
		return message.Raw, nil
	case callOf(strings.TrimSuffix(read.kind, "_output")).body == "":
		return nil, fmt.Errorf("%w: %s", wire.ErrFixed, read.kind)
	case message.Blocks[0].Kind == conversation.ToolCall:
		return encodeCall(message.Raw, read, message.Blocks[0].Text)
	case message.Blocks[0].Kind == conversation.ToolResult:
		return encodeResult(message.Raw, read, message.Blocks[0].Text)
	}
	return nil, fmt.Errorf("%w: %s", wire.ErrFixed, message.Blocks[0].Kind)
}

// encodeCall replaces the arguments of a tool call.
func encodeCall(raw json.RawMessage, read item, text string) (json.RawMessage, error) {
	body := callOf(read.kind).body
	if body == "input" {
		return wire.Set(raw, body, wire.Quote(text)), nil
	}
	arguments := json.RawMessage(text)
	if !json.Valid(arguments) {
		return nil, &wire.Invalid{Member: body, Message: "expected JSON"}
	}
	if body == "arguments" {
		return wire.Set(raw, body, wire.Quote(text)), nil
	}
	if arguments[0] != '{' {
		return nil, &wire.Invalid{Member: body, Message: "expected a JSON object"}
	}
	return wire.Set(raw, body, arguments), nil
}

// encodeResult replaces the text of a tool's output.
func encodeResult(raw json.RawMessage, read item, text string) (json.RawMessage, error) {
	switch read.kind {
	case "computer_call_output":
		return nil, fmt.Errorf("%w: %s", wire.ErrFixed, read.kind)
	case "shell_call_output":
		outcome := json.RawMessage(`{"type":"exit","exit_code":0}`)
		for _, part := range wire.Elements(read.output) {
			sent := wire.Get(part, "outcome")
			if !wire.IsNull(sent) && (hasFailed(sent) || !hasFailed(outcome)) {
				outcome = sent
			}
		}
		output := wire.AppendQuote([]byte(`[{"stdout":`), text)
		output = append(append(output, `,"stderr":"","outcome":`...), outcome...)
		return wire.Set(raw, "output", append(output, "}]"...)), nil
	}
	return wire.Set(raw, "output", wire.Quote(text)), nil
}

// encodeMessage encodes the changed parts of a message.
func encodeMessage(message conversation.Message, read item, role conversation.Role) (json.RawMessage, error) {
	if len(message.Blocks) == 1 && message.Blocks[0].Raw == nil && !wire.HasElements(read.content) {
		if strings.TrimSpace(message.Blocks[0].Text) == "" {
			return nil, wire.ErrEmpty
		}
		return wire.Set(message.Raw, "content", wire.Quote(message.Blocks[0].Text)), nil
	}
	var sent []conversation.Block
	for _, part := range wire.Elements(read.content) {
		sent = append(sent, parsePart(part))
	}
	content := []byte{'['}
	for i, origin := range wire.Origins(sent, message.Blocks) {
		block := &message.Blocks[i]
		part := block.Raw
		if part == nil {
			var was json.RawMessage
			if origin >= 0 {
				was = sent[origin].Raw
			}
			var err error
			if part, err = encodePart(block, was, role); err != nil {
				return nil, fmt.Errorf("block %d: %w", i, err)
			}
		}
		if len(part) > 0 && len(content) > 1 {
			content = append(content, ',')
		}
		content = append(content, part...)
	}
	if len(content) == 1 {
		return nil, wire.ErrEmpty
	}
	return wire.Set(message.Raw, "content", append(content, ']')), nil
}

// encodePart encodes a changed or new part; nil without text. was is the original part, nil for a new one.
func encodePart(block *conversation.Block, was json.RawMessage, role conversation.Role) (json.RawMessage, error) {
	if block.Kind != conversation.Text && block.Kind != conversation.Media {
		return nil, fmt.Errorf("%w: %s", wire.ErrFixed, block.Kind)
	}
	if strings.TrimSpace(block.Text) == "" {
		return nil, nil
	}
	if block.Kind == conversation.Text && was != nil {
		part := wire.Set(wire.Delete(was, "logprobs"), "text", wire.Quote(block.Text))
		if wire.Get(part, "annotations") != nil {
			part = wire.Set(part, "annotations", json.RawMessage("[]")) // they point into the old text
		}
		return part, nil
	}
	kind := "input_text"
	if role == conversation.Assistant {
		kind = "output_text"
	}
	return append(wire.AppendQuote([]byte(`{"type":"`+kind+`","text":`), block.Text), '}'), nil
}

// encodeNew encodes our message: text as a string, other content as parts.
func encodeNew(message conversation.Message) (json.RawMessage, error) {
	var texts []string
	parts, isText := []byte{'['}, true
	for i := range message.Blocks {
		block := &message.Blocks[i]
		part := block.Raw
		if part == nil {
			var err error
			if part, err = encodePart(block, nil, message.Role); err != nil {
				return nil, fmt.Errorf("block %d: %w", i, err)
			}
			if len(part) == 0 {
				continue
			}
			texts = append(texts, block.Text)
		} else {
			isText = false
		}
		if len(parts) > 1 {
			parts = append(parts, ',')
		}
		parts = append(parts, part...)
	}
	if len(parts) == 1 {
		return nil, wire.ErrEmpty
	}
	content := json.RawMessage(append(parts, ']'))
	if isText {
		content = wire.Quote(strings.Join(texts, "\n\n"))
	}
	out := wire.AppendQuote([]byte(`{"role":`), string(message.Role))
	return append(append(append(out, `,"content":`...), content...), '}'), nil
}
