package openairesponses

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

// IsOpening implements wire.LateRefuser.
func (Codec) IsOpening(event wire.Event) bool {
	switch nameOf(event) {
	case "response.created", "response.queued", "response.in_progress":
		return true
	}
	return false
}

// LateOverflow implements wire.LateRefuser.
func (Codec) LateOverflow(event wire.Event) (wire.Overflow, bool) {
	switch nameOf(event) {
	case "response.failed":
		return wire.StreamOverflow(wire.Get(wire.Get(event.Data, "response"), "error"))
	case "error":
		return wire.StreamOverflow(problemOf(event))
	}
	return wire.Overflow{}, false
}

// Interface guard.
var _ wire.LateRefuser = Codec{}
