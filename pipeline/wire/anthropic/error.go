package anthropic

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Error returns the body of our error, as Anthropic's API words one.
func (Codec) Error(problem wire.Problem) []byte {
	out := wire.AppendQuote([]byte(`{"type":"error","error":{"type":`), problem.Type)
	out = wire.AppendQuote(append(out, `,"message":`...), problem.Message)
	if problem.Code != "" {
		out = wire.AppendQuote(append(out, `,"details":{"error_code":`...), problem.Code)
		out = append(out, '}')
	}
	out = wire.AppendQuote(append(out, `},"request_id":`...), problem.RequestID)
	return append(out, '}')
}

// Overflow reads a provider's error.
func (Codec) Overflow(status int, body json.RawMessage) (wire.Overflow, bool) {
	return wire.AnthropicOverflow(status, body)
}
