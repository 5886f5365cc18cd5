package geminiinteractions

import (
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Encode returns a step's bytes, unchanged if the step is.
func (Codec) Encode(message conversation.Message) (json.RawMessage, error) {
	if message.Raw == nil {
		return encodeNew(message)
	}
	if !message.Changed {
		return message.Raw, nil
	}
	read := readStep(message.Raw)
	switch {
	case message.Raw[0] == '"':
		return encodeNew(message)
	case read.kind == userInput, read.kind == modelOutput:
		return encodeContents(message, read)
	case len(message.Blocks) != 1:
		return nil, wire.ErrFixed
	case message.Blocks[0].Raw != nil:
		return message.Raw, nil
	case read.isSigned:
		return nil, fmt.Errorf("%w: its signature", wire.ErrFixed)
	case isContent(read.kind):
		content, err := encodeContent(&message.Blocks[0], message.Raw)
		if err == nil && content == nil {
			err = wire.ErrEmpty
		}
		return content, err
	case read.kind == functionCall:
		if arguments := strings.TrimSpace(message.Blocks[0].Text); !json.Valid([]byte(arguments)) || arguments[0] != '{' {
			return nil, &wire.Invalid{Member: "arguments", Message: "expected a JSON object"}
		}
		return wire.Set(message.Raw, "arguments", json.RawMessage(message.Blocks[0].Text)), nil
	case read.kind == functionResult:
		return wire.Set(message.Raw, "result", wire.Quote(message.Blocks[0].Text)), nil
	}
	return nil, fmt.Errorf("%w: %s", wire.ErrFixed, read.kind)
}

// encodeContents encodes the changed contents of a step.
func encodeContents(message conversation.Message, read step) (json.RawMessage, error) {
	list, err := encodeList(message.Blocks, contents(read.content))
	if err != nil {
		return nil, err
	}
	return wire.Set(message.Raw, "content", list), nil
}

// encodeNew encodes our message as a step.
func encodeNew(message conversation.Message) (json.RawMessage, error) {
	list, err := encodeList(message.Blocks, nil)
	if err != nil {
		return nil, err
	}
	kind := userInput
	if message.Role == conversation.Assistant {
		kind = modelOutput
	}
	return append(append([]byte(`{"type":"`+kind+`","content":`), list...), '}'), nil
}

// encodeList encodes blocks as contents; sent are the original ones.
func encodeList(blocks, sent []conversation.Block) (json.RawMessage, error) {
	list := []byte{'['}
	for i, origin := range wire.Origins(sent, blocks) {
		content := blocks[i].Raw
		if content == nil {
			var was json.RawMessage
			if origin >= 0 {
				was = sent[origin].Raw
			}
			var err error
			if content, err = encodeContent(&blocks[i], was); err != nil {
				return nil, fmt.Errorf("content %d: %w", i, err)
			}
		}
		if len(content) > 0 && len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, content...)
	}
	if len(list) == 1 {
		return nil, wire.ErrEmpty
	}
	return append(list, ']'), nil
}

// encodeContent encodes a changed or new content; nil without text. was is the original content, nil for a new
// one.
func encodeContent(block *conversation.Block, was json.RawMessage) (json.RawMessage, error) {
	switch {
	case block.Kind != conversation.Text && block.Kind != conversation.Media:
		return nil, fmt.Errorf("%w: %s", wire.ErrFixed, block.Kind)
	case strings.TrimSpace(block.Text) == "":
		return nil, nil
	case block.Kind == conversation.Text && was != nil:
		return wire.Set(wire.Delete(was, "annotations"), "text", wire.Quote(block.Text)), nil // they point into the old text
	}
	return textContent(wire.Quote(block.Text)), nil
}

// textContent returns a content with a quoted text.
func textContent(quoted json.RawMessage) json.RawMessage { return wire.TextBlock("text")(quoted) }
