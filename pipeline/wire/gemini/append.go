package gemini

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Append returns a content of the user with texts as its last parts.
func (Codec) Append(raw json.RawMessage, texts ...string) (json.RawMessage, error) {
	parts, err := appendTexts(wire.Get(raw, "parts"), texts)
	if err != nil {
		return nil, err
	}
	return wire.Set(raw, "parts", parts), nil
}

// appendTexts returns an array of parts with texts behind them.
func appendTexts(parts json.RawMessage, texts []string) (json.RawMessage, error) {
	if len(parts) == 0 || parts[0] != '[' {
		return nil, &wire.Invalid{Member: "parts", Message: "expected an array"}
	}
	more := make([]json.RawMessage, len(texts))
	for i, said := range texts {
		more[i] = textPart(said)
	}
	return wire.AppendElements(parts, more...), nil
}

// Instruct returns the system instruction with texts as its last parts.
func (Codec) Instruct(body *wire.Envelope, texts []string) wire.Instruction {
	name := "systemInstruction"
	own, has := body.Member(name)
	if !has {
		if snake, isSnake := body.Member("system_instruction"); isSnake {
			name, own = "system_instruction", snake
		}
	}
	if wire.IsNull(own) {
		own = json.RawMessage(`{"parts":[]}`)
	}
	parts, err := appendTexts(wire.Get(own, "parts"), texts)
	if err != nil {
		return wire.Instruction{} // the provider will reject the body
	}
	return wire.Instruction{Member: wire.Member{Name: name, Raw: wire.Set(own, "parts", parts)}}
}
