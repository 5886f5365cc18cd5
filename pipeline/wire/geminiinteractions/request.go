package geminiinteractions

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Request implements wire.Codec. An agent takes the place of the model, also for limits and prices.
func (c Codec) Request(body *wire.Envelope) (wire.Request, error) {
	fields := wire.NewFields(body)
	request := wire.Request{Model: fields.String("model"), Stream: fields.Bool("stream"), ReadOnly: c.readOnly(fields)}
	for _, part := range []json.RawMessage{fields.Raw("system_instruction"), fields.Array("tools"), fields.Raw("response_format")} {
		if part != nil {
			request.Fixed = append(request.Fixed, part)
		}
	}
	most, _ := wire.Int(wire.Get(fields.Object("generation_config"), "max_output_tokens"))
	request.MaxOutput = max(0, most)
	agent := fields.String("agent")
	if agent != "" && request.Model != "" && fields.Err() == nil {
		return request, &wire.Invalid{Member: "agent", Message: "is there beside a model; send one of them"}
	}
	request.Model += agent
	request.SessionID, request.SessionSource = wire.SessionName(body)
	request.Previous = wire.Previous(body)
	return request, fields.Err()
}

// readOnly returns why the input must stay as the client sent it: Google has the rest of the history, the input
// is for an agent, or it is one message of the user rather than a list of steps; "" if it may change.
func (c Codec) readOnly(fields *wire.Fields) string {
	for _, member := range []string{"previous_interaction_id", "agent"} {
		if fields.Raw(member) != nil {
			return member
		}
	}
	input := fields.Raw(c.List())
	if len(input) > 0 && input[0] != '[' {
		return c.List()
	}
	for _, first := range wire.Elements(input) {
		if isContent(wire.Text(first, "type")) {
			return c.List()
		}
		break
	}
	return ""
}
