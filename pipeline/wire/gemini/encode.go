package gemini

import (
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Encode returns a content's bytes, unchanged if the content is.
func (Codec) Encode(message conversation.Message) (json.RawMessage, error) {
	if message.Raw != nil && !message.Changed {
		return message.Raw, nil
	}
	var sent []conversation.Block
	if message.Raw != nil {
		ids := ordinals{}
		for _, raw := range wire.Elements(wire.Get(message.Raw, "parts")) {
			sent = append(sent, readPart(raw).block(ids))
		}
	}
	parts := []byte{'['}
	for i, origin := range wire.Origins(sent, message.Blocks) {
		block := &message.Blocks[i]
		raw := block.Raw
		if raw == nil {
			var was json.RawMessage
			if origin >= 0 {
				was = sent[origin].Raw
			}
			var err error
			if raw, err = encodePart(block, was); err != nil {
				return nil, fmt.Errorf("part %d: %w", i, err)
			}
		}
		if len(raw) > 0 && len(parts) > 1 {
			parts = append(parts, ',')
		}
		parts = append(parts, raw...)
	}
	if len(parts) == 1 {
		return nil, wire.ErrEmpty
	}
	parts = append(parts, ']')
	if message.Raw != nil {
		return wire.Set(message.Raw, "parts", parts), nil
	}
	role := "user"
	if message.Role == conversation.Assistant {
		role = "model"
	}
	out := wire.AppendQuote([]byte(`{"role":`), role)
	return append(append(append(out, `,"parts":`...), parts...), '}'), nil
}

// encodePart encodes a changed or new part; nil without text. was is the original part, nil for a new one.
func encodePart(block *conversation.Block, was json.RawMessage) (json.RawMessage, error) {
	read := readPart(was)
	switch {
	case read.isSigned:
		return nil, fmt.Errorf("%w: its thoughtSignature", wire.ErrFixed)
	case block.Kind == conversation.ToolResult && read.kind == response:
		return encodeResponse(read, block.Text), nil
	case block.Kind == conversation.ToolCall && read.kind == call:
		if arguments := strings.TrimSpace(block.Text); !json.Valid([]byte(arguments)) || arguments[0] != '{' {
			return nil, &wire.Invalid{Member: "args", Message: "expected a JSON object"}
		}
		return wire.Set(was, read.name, wire.Set(read.data, "args", json.RawMessage(block.Text))), nil
	case block.Kind != conversation.Text && block.Kind != conversation.Media:
		return nil, fmt.Errorf("%w: %s", wire.ErrFixed, block.Kind)
	case strings.TrimSpace(block.Text) == "":
		return nil, nil
	case read.kind == text:
		return wire.Set(was, read.name, wire.Quote(block.Text)), nil
	}
	return textPart(block.Text), nil
}

// encodeResponse replaces the text of a tool's response, and removes its media.
func encodeResponse(read part, said string) json.RawMessage {
	member := outputOf(wire.Get(read.data, "response")).member
	if member == "" {
		member = "output"
	}
	out := append(wire.AppendQuote([]byte{'{'}, member), ':')
	out = append(wire.AppendQuote(out, said), '}')
	return wire.Set(read.raw, read.name, wire.Set(wire.Delete(read.data, "parts"), "response", out))
}

// textPart returns a part with a text.
func textPart(said string) json.RawMessage {
	return append(wire.AppendQuote([]byte(`{"text":`), said), '}')
}
