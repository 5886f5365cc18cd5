package openairesponses

import (
	"palimpsest/pipeline/wire"
)

// Error returns the body of our error, in the form of OpenAI's API.
func (Codec) Error(problem wire.Problem) []byte { return problem.OpenAI() }

// Opening implements wire.Codec.
func (Codec) Opening(event wire.Event) wire.Opening {
	switch nameOf(event) {
	case "response.created", "response.queued", "response.in_progress":
		return wire.Opens
	case "keepalive", "ping":
		return wire.IsAlive
	}
	return wire.Begun
}
