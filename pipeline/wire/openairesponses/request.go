package openairesponses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

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
		ReadOnly:  readOnly(fields),
		TakesOut:  fields.String("truncation") == "auto",
	}
	for _, part := range []json.RawMessage{fields.TextOrArray("instructions"), fields.Array("tools")} {
		if part != nil {
			request.Fixed = append(request.Fixed, part)
		}
	}
	refers, toOthers := references(body)
	request.Refers = refers
	if toOthers {
		request.ReadOnly = cmp.Or(request.ReadOnly, reference)
	}
	request.SessionID, request.SessionSource = wire.SessionName(body)
	request.EndUser = wire.EndUser(body)
	return request, fields.Err()
}

// readOnly says why the history must stay as the client sent it: the provider keeps
// the rest of it. Empty if it may change.
func readOnly(fields *wire.Fields) string {
	for _, member := range []string{"previous_response_id", "conversation"} {
		if fields.Raw(member) != nil {
			return member
		}
	}
	return ""
}

// reference is the type of an item that only names one which the provider keeps.
const reference = "item_reference"

// references reports whether items of a body stand for ones that the provider keeps, and whether any
// stands for something else than what the model thought or said. The AI SDK refers to these by default; they go with
// their turn, where a history with other references must stay as it is.
func references(body *wire.Envelope) (refers, toOthers bool) {
	if !bytes.Contains(body.Body(), []byte(reference)) {
		return false, false // as in nearly every request: no item needs to be read
	}
	for i := range body.Len() {
		if read := readItem(body.Element(i)); read.kind == reference {
			refers, toOthers = true, toOthers || !isSpoken(read.id)
		}
	}
	return refers, toOthers
}

// isSpoken reports whether an id is that of reasoning or of a message.
func isSpoken(id string) bool { return strings.HasPrefix(id, "rs_") || strings.HasPrefix(id, "msg_") }
