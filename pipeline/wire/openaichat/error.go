package openaichat

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Error returns the body of our error, as OpenAI's API words one.
func (Codec) Error(problem wire.Problem) []byte { return problem.OpenAI() }

// Overflow reads a provider's error.
func (Codec) Overflow(status int, body json.RawMessage) (wire.Overflow, bool) {
	return wire.OpenAIOverflow(status, body)
}
