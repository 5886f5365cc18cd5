package geminiinteractions

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

// Append returns a step of the user with texts as its last contents.
func (Codec) Append(raw json.RawMessage, texts ...string) (json.RawMessage, error) {
	if wire.Text(raw, "type") != userInput {
		return nil, &wire.Invalid{Member: "type", Message: "expected " + userInput}
	}
	list, err := wire.AppendBlocks(wire.Get(raw, "content"), texts, textContent)
	if err != nil {
		return nil, err
	}
	return wire.Set(raw, "content", list), nil
}

// Instruct returns the system instruction with texts appended as paragraphs.
func (Codec) Instruct(body *wire.Envelope, texts []string) wire.Instruction {
	own, has := body.Member("system_instruction")
	said, isText := wire.String(own)
	switch {
	case has && !isText && !wire.IsNull(own):
		return wire.Instruction{} // the provider will reject the body
	case strings.TrimSpace(said) != "":
		texts = append([]string{said}, texts...)
	}
	return wire.Instruction{Member: wire.Member{Name: "system_instruction", Raw: wire.Quote(strings.Join(texts, "\n\n"))}}
}
