package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Encode returns a message's bytes, unchanged if the message is.
func (Codec) Encode(message conversation.Message) (json.RawMessage, error) {
	if message.Raw != nil && !message.Changed {
		return message.Raw, nil
	}
	var content json.RawMessage
	if message.Raw != nil {
		content = wire.Get(message.Raw, "content")
	}
	if message.Raw != nil && (len(content) == 0 || content[0] != '"' && content[0] != '[') {
		return nil, &wire.Invalid{Member: "content", Message: "expected a string or an array"}
	}
	if len(content) > 0 && content[0] == '"' && len(message.Blocks) == 1 && message.Blocks[0].Kind == conversation.Text {
		if strings.TrimSpace(message.Blocks[0].Text) == "" {
			return nil, wire.ErrEmpty
		}
		return wire.Set(message.Raw, "content", wire.Quote(message.Blocks[0].Text)), nil
	}
	blocks, err := encodeBlocks(message, content)
	if err != nil {
		return nil, err
	}
	if message.Raw != nil {
		return wire.Set(message.Raw, "content", blocks), nil
	}
	out := append(make([]byte, 0, len(blocks)+len(message.Role)+24), `{"role":`...)
	out = wire.AppendQuote(out, string(message.Role))
	out = append(append(out, `,"content":`...), blocks...)
	return append(out, '}'), nil
}

// encodeBlocks returns a message's content. Unchanged blocks keep their bytes.
func encodeBlocks(message conversation.Message, content json.RawMessage) (json.RawMessage, error) {
	var sent []conversation.Block
	for _, raw := range wire.Elements(content) {
		sent = append(sent, outline(raw, readBlock(raw)))
	}
	origins := wire.Origins(sent, message.Blocks)
	out := []byte{'['}
	for i := range message.Blocks {
		block := &message.Blocks[i]
		raw := block.Raw
		if raw == nil {
			var origin json.RawMessage
			if origins[i] >= 0 {
				origin = sent[origins[i]].Raw
			}
			var err error
			if raw, err = encodeBlock(block, origin); err != nil {
				return nil, fmt.Errorf("block %d: %w", i, err)
			}
		}
		if len(raw) == 0 {
			continue
		}
		out = slices.Grow(out, len(raw)+2)
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	if len(out) == 1 {
		return nil, wire.ErrEmpty
	}
	return append(out, ']'), nil
}

// encodeBlock encodes a changed or new block; nil without text. origin is the original block, nil for a new
// one.
func encodeBlock(block *conversation.Block, origin json.RawMessage) (json.RawMessage, error) {
	isBlank := strings.TrimSpace(block.Text) == ""
	switch {
	case block.Kind == conversation.ToolResult && origin != nil:
		raw := wire.Delete(origin, marker)
		if isBlank {
			return wire.Delete(raw, "content"), nil
		}
		return wire.Set(raw, "content", wire.Quote(block.Text)), nil
	case block.Kind == conversation.ToolCall && origin != nil:
		input := json.RawMessage(block.Text)
		if !json.Valid(input) || input[0] != '{' {
			return nil, &wire.Invalid{Member: "input", Message: "expected a JSON object"}
		}
		return wire.Set(wire.Delete(origin, marker), "input", input), nil
	case block.Kind == conversation.Text || block.Kind == conversation.Media:
		if isBlank {
			return nil, nil
		}
		const opening = `{"type":"text","text":`
		out := append(make([]byte, 0, len(opening)+len(block.Text)+len(block.Text)/16+3), opening...)
		return append(wire.AppendQuote(out, block.Text), '}'), nil
	}
	return nil, fmt.Errorf("%w: %s", wire.ErrFixed, block.Kind)
}
