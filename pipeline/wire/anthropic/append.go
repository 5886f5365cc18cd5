package anthropic

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Append returns a user message with texts as its last blocks, because tool results must come first.
func (Codec) Append(raw json.RawMessage, texts ...string) (json.RawMessage, error) {
	content, err := wire.AppendBlocks(wire.Get(raw, "content"), texts, wire.TextBlock("text"))
	if err != nil {
		return nil, err
	}
	return wire.Set(raw, "content", content), nil
}

// Instruct returns the system prompt with texts as its last blocks.
func (Codec) Instruct(body *wire.Envelope, texts []string) wire.Instruction {
	system, _ := body.Member("system")
	if wire.IsNull(system) {
		system = json.RawMessage("[]")
	}
	longer, err := wire.AppendBlocks(system, texts, wire.TextBlock("text"))
	if err != nil {
		return wire.Instruction{} // the provider will reject the body
	}
	return wire.Instruction{Member: wire.Member{Name: "system", Raw: longer}}
}
