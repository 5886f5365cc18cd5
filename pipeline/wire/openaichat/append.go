package openaichat

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Append returns a user message with texts as the last parts of its content.
func (Codec) Append(raw json.RawMessage, texts ...string) (json.RawMessage, error) {
	content, err := wire.AppendBlocks(wire.Get(raw, "content"), texts, wire.TextBlock("text"))
	if err != nil {
		return nil, err
	}
	return wire.Set(raw, "content", content), nil
}

// Instruct returns a message for each text, after the list's leading system and developer messages and in the
// role of the last of these.
func (Codec) Instruct(body *wire.Envelope, texts []string) wire.Instruction {
	return wire.LeadingMessages(body, texts, "system")
}
