package anthropic

import (
	"palimpsest/pipeline/wire"
)

// Error returns the body of our error, in the form of Anthropic's API.
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

// Opening implements wire.Codec. An empty text block only opens the stream. A stream that ends at a token
// limit before any text may mean that there was no room for the answer.
func (Codec) Opening(event wire.Event) wire.Opening {
	if wire.ProblemOf(event) != nil {
		return wire.Begun
	}
	switch nameOf(event) {
	case "message_start", "content_block_stop":
		return wire.Opens
	case "content_block_start":
		block := wire.Get(event.Data, "content_block")
		if wire.Text(block, "type") == "text" && wire.Text(block, "text") == "" {
			return wire.Opens
		}
	case "message_delta":
		switch wire.Text(wire.Get(event.Data, "delta"), "stop_reason") {
		case "max_tokens", "model_context_window_exceeded":
			return wire.Opens
		}
	case "ping":
		return wire.IsAlive
	}
	return wire.Begun
}
