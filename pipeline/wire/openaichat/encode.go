package openaichat

import (
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Encode returns a message's bytes, unchanged if the message is.
func (Codec) Encode(message conversation.Message) (json.RawMessage, error) {
	if message.Raw == nil {
		return encodeNew(message)
	}
	if !message.Changed {
		return message.Raw, nil
	}
	if message.Role == conversation.Tool {
		return encodeResult(message)
	}
	slots := slotsOf(readMessage(message.Raw))
	sent := make([]conversation.Block, len(slots))
	for i := range slots {
		sent[i] = slots[i].block
	}
	now := make([]*conversation.Block, len(slots)) // nil if removed
	origins, hasNew := wire.Origins(sent, message.Blocks), false
	for i, origin := range origins {
		if origin >= 0 {
			now[origin] = &message.Blocks[i]
		}
		hasNew = hasNew || origin < 0
	}
	raw := message.Raw
	if hasNew {
		content, err := extendedContent(message.Blocks, origins, slots)
		if err != nil {
			return nil, err
		}
		raw = wire.Set(raw, "content", content)
		slots, now = withoutContent(slots, now)
	}
	for _, member := range []string{"content", "tool_calls", "function_call", "refusal", "audio", "reasoning", "reasoning_content", "reasoning_details"} {
		var err error
		if raw, err = encodeMember(raw, member, slots, now); err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
	}
	if len(message.Blocks) == 0 || len(slotsOf(readMessage(raw))) == 0 {
		return nil, wire.ErrEmpty
	}
	return raw, nil
}

// encodeMember encodes the changed blocks of one member.
func encodeMember(raw json.RawMessage, member string, slots []slot, now []*conversation.Block) (json.RawMessage, error) {
	var parts []json.RawMessage // in the member's array
	isWhole, some, changed := false, false, false
	for i := range slots {
		if slots[i].member != member {
			continue
		}
		part, err := encodeSlot(&slots[i], now[i], sentAs(&slots[i], raw))
		if err != nil {
			return nil, err
		}
		isWhole = slots[i].index < 0
		some = some || len(part) > 0
		changed = changed || string(part) != string(sentAs(&slots[i], raw))
		parts = append(parts, part)
	}
	switch {
	case !changed:
		return raw, nil
	case !some && member == "content":
		return wire.Set(raw, member, json.RawMessage("null")), nil
	case !some:
		return wire.Delete(raw, member), nil
	case isWhole:
		return wire.Set(raw, member, parts[0]), nil
	}
	return wire.Set(raw, member, wire.Replace(wire.Get(raw, member), func(i int, _ json.RawMessage) json.RawMessage {
		return parts[i]
	})), nil
}

// sentAs returns the bytes of a slot's block in the original message.
func sentAs(slot *slot, raw json.RawMessage) json.RawMessage {
	if slot.block.Raw != nil {
		return slot.block.Raw
	}
	return wire.Get(raw, slot.member)
}

// extendedContent encodes the content of a message with new blocks as parts.
func extendedContent(blocks []conversation.Block, origins []int, slots []slot) (json.RawMessage, error) {
	content := []byte{'['}
	for i := range blocks {
		inList := slot{block: blocks[i], member: "content"}
		if origins[i] >= 0 {
			inList.member = slots[origins[i]].member
		}
		if inList.member != "content" {
			continue
		}
		part, err := encodeSlot(&inList, &blocks[i], nil)
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		if len(part) > 0 && len(content) > 1 {
			content = append(content, ',')
		}
		content = append(content, part...)
	}
	return append(content, ']'), nil
}

// withoutContent returns the slots outside the content.
func withoutContent(slots []slot, now []*conversation.Block) (rest []slot, restNow []*conversation.Block) {
	for i := range slots {
		if slots[i].member != "content" {
			rest, restNow = append(rest, slots[i]), append(restNow, now[i])
		}
	}
	return rest, restNow
}

// encodeSlot encodes the current block of a slot in place of sent; nil if the slot is empty.
func encodeSlot(slot *slot, block *conversation.Block, sent json.RawMessage) (json.RawMessage, error) {
	switch {
	case block == nil:
		return nil, nil
	case block.Raw != nil:
		return block.Raw, nil
	case slot.block.Raw == nil && block.Text == slot.block.Text && sent != nil:
		return sent, nil
	case block.Kind == conversation.ToolCall:
		return encodeCall(slot.block.Raw, block.Text)
	case block.Kind == conversation.Text || block.Kind == conversation.Media:
		if strings.TrimSpace(block.Text) == "" {
			return nil, nil
		}
		if slot.index < 0 {
			return wire.Quote(block.Text), nil
		}
		return textPart(block.Text), nil
	}
	return nil, fmt.Errorf("%w: %s", wire.ErrFixed, block.Kind)
}

// encodeCall replaces the arguments of a tool call.
func encodeCall(raw json.RawMessage, arguments string) (json.RawMessage, error) {
	if custom := wire.Get(raw, "custom"); custom != nil {
		return wire.Set(raw, "custom", wire.Set(custom, "input", wire.Quote(arguments))), nil
	}
	if !json.Valid([]byte(arguments)) {
		return nil, &wire.Invalid{Member: "arguments", Message: "expected JSON"}
	}
	function := wire.Get(raw, "function")
	if function == nil {
		return wire.Set(raw, "arguments", wire.Quote(arguments)), nil
	}
	return wire.Set(raw, "function", wire.Set(function, "arguments", wire.Quote(arguments))), nil
}

// encodeResult replaces the text of a tool's message.
func encodeResult(message conversation.Message) (json.RawMessage, error) {
	if len(message.Blocks) != 1 || message.Blocks[0].Kind != conversation.ToolResult {
		return nil, wire.ErrFixed
	}
	if message.Blocks[0].Raw != nil {
		return message.Raw, nil
	}
	return wire.Set(message.Raw, "content", wire.Quote(message.Blocks[0].Text)), nil
}

// encodeNew encodes our message: text as a string, other content as parts.
func encodeNew(message conversation.Message) (json.RawMessage, error) {
	var texts []string
	parts, isText := []byte{'['}, true
	for i := range message.Blocks {
		block := &message.Blocks[i]
		part := block.Raw
		switch {
		case part != nil:
			isText = false
		case block.Kind != conversation.Text && block.Kind != conversation.Media:
			return nil, fmt.Errorf("block %d: %w: %s", i, wire.ErrFixed, block.Kind)
		case strings.TrimSpace(block.Text) == "":
			continue
		default:
			texts, part = append(texts, block.Text), textPart(block.Text)
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

func textPart(text string) json.RawMessage {
	return append(wire.AppendQuote([]byte(`{"type":"text","text":`), text), '}')
}
