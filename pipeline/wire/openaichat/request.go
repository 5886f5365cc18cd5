package openaichat

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Request implements wire.Codec. The history is never read-only, because the provider does not store it.
func (c Codec) Request(body *wire.Envelope) (wire.Request, error) {
	fields := wire.NewFields(body)
	fields.Array(c.List())
	request := wire.Request{
		Model:     fields.String("model"),
		Stream:    fields.Bool("stream"),
		MaxOutput: fields.Int("max_completion_tokens"),
	}
	if old := fields.Int("max_tokens"); request.MaxOutput == 0 {
		request.MaxOutput = old
	}
	for _, part := range []json.RawMessage{
		fields.Array("tools"), fields.Array("functions"), fields.Object("response_format"),
	} {
		if part != nil {
			request.Fixed = append(request.Fixed, part)
		}
	}
	request.SessionID, request.SessionSource = wire.SessionName(body)
	request.EndUser = wire.EndUser(body)
	return request, fields.Err()
}
