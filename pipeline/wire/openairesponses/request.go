package openairesponses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

// Request implements wire.Codec.
func (c Codec) Request(body *wire.Envelope) (wire.Request, error) {
	fields := wire.NewFields(body)
	fields.TextOrArray(c.List())
	request := wire.Request{
		Model:     fields.String("model"),
		Stream:    fields.Bool("stream"),
		MaxOutput: fields.Int("max_output_tokens"),
		ReadOnly:  readOnly(fields),
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
	request.Previous, request.EndUser = wire.Previous(body), wire.EndUser(body)
	return request, fields.Err()
}

// readOnly returns why the history must stay as the client sent it: the provider stores the rest of it; "" if
// it may change.
func readOnly(fields *wire.Fields) string {
	for _, member := range []string{"previous_response_id", "conversation"} {
		if fields.Raw(member) != nil {
			return member
		}
	}
	return ""
}

// reference is the type of an item that refers to one stored by the provider.
const reference = "item_reference"

// references reports whether items of a body refer to items stored by the provider, and whether any of those
// is other than the model's reasoning or message. The AI SDK uses references to reasoning and messages by
// default; they leave with their turn, whereas a history with other references must not be edited.
func references(body *wire.Envelope) (refers, toOthers bool) {
	if !bytes.Contains(body.Body(), []byte(reference)) {
		return false, false // as in nearly every request, so that no item needs to be read
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
