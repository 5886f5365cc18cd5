package openaichat

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Error returns the body of our error, in the form of OpenAI's API.
func (Codec) Error(problem wire.Problem) []byte { return problem.OpenAI() }

// Opening implements wire.Codec. A chunk without text only opens the stream. A stream that ends for its
// length before any text may mean that there was no room for the answer.
func (Codec) Opening(event wire.Event) wire.Opening {
	if string(event.Data) == "[DONE]" || wire.ProblemOf(event) != nil {
		return wire.Begun
	}
	for _, choice := range wire.Elements(wire.Get(event.Data, "choices")) {
		if isSaying(wire.Get(choice, "delta")) {
			return wire.Begun
		}
		switch wire.Text(choice, "finish_reason") {
		case "", "length":
		default:
			return wire.Begun
		}
	}
	return wire.Opens
}

// isSaying reports whether a delta contains any part of an answer.
func isSaying(delta json.RawMessage) bool {
	for name, value := range wire.Members(delta) {
		if string(name) != "role" && !wire.IsNull(value) && string(value) != `""` && string(value) != "[]" {
			return true
		}
	}
	return false
}
