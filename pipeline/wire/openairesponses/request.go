package openairesponses

import (
	"bytes"
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Request reads what the proxy needs to know of a body beside its input.
func (c Codec) Request(body *wire.Envelope) (wire.Request, error) {
	fields := wire.NewFields(body)
	fields.TextOrArray(c.List())
	request := wire.Request{
		Model:     fields.String("model"),
		Stream:    fields.Bool("stream"),
		MaxOutput: fields.Int("max_output_tokens"),
		Frozen:    frozen(fields, body),
		TakesOut:  fields.String("truncation") == "auto",
	}
	for _, part := range []json.RawMessage{fields.TextOrArray("instructions"), fields.Array("tools")} {
		if part != nil {
			request.Fixed = append(request.Fixed, part)
		}
	}
	request.SessionID, request.SessionSource = wire.SessionName(body)
	return request, fields.Err()
}

// frozen says why the history must stay as the client sent it: the provider keeps
// the rest of it. Empty if it may change.
func frozen(fields *wire.Fields, body *wire.Envelope) string {
	for _, member := range []string{"previous_response_id", "conversation"} {
		if fields.Raw(member) != nil {
			return member
		}
	}
	if hasReference(body) {
		return reference
	}
	return ""
}

// reference is the type of an item that only names one which the provider keeps.
const reference = "item_reference"

// hasReference reports whether the provider knows more of the history than the body.
func hasReference(body *wire.Envelope) bool {
	if !bytes.Contains(body.Body(), []byte(reference)) {
		return false // as in nearly every request: no item needs to be read
	}
	for i := range body.Len() {
		if readItem(body.Element(i)).kind == reference {
			return true
		}
	}
	return false
}
