package openairesponses

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

// Append returns a user message item with texts as the last parts of its content. A string input becomes the
// equivalent item.
func (Codec) Append(raw json.RawMessage, texts ...string) (json.RawMessage, error) {
	isText := len(raw) > 0 && raw[0] == '"'
	content := raw
	if !isText {
		content = wire.Get(raw, "content")
	}
	content, err := wire.AppendBlocks(content, texts, wire.TextBlock("input_text"))
	if err != nil {
		return nil, err
	}
	if isText {
		raw = json.RawMessage(`{"role":"user"}`)
	}
	return wire.Set(raw, "content", content), nil
}

// Instruct returns the instructions with texts appended as paragraphs. Without instructions, it returns a
// message for each text, after the list's leading system and developer messages.
func (Codec) Instruct(body *wire.Envelope, texts []string) wire.Instruction {
	instructions, _ := body.Member("instructions")
	if own, isText := wire.String(instructions); isText {
		parts := texts
		if strings.TrimSpace(own) != "" {
			parts = append([]string{own}, texts...)
		}
		return wire.Instruction{Member: wire.Member{Name: "instructions", Raw: wire.Quote(strings.Join(parts, "\n\n"))}}
	}
	return wire.LeadingMessages(body, texts, "developer")
}
