package geminiinteractions

import (
	"cmp"
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Error returns the body of our error. Unlike in Google's other APIs, the code is a word.
func (Codec) Error(problem wire.Problem) []byte {
	out := wire.AppendQuote([]byte(`{"error":{"code":`), cmp.Or(problem.Code, problem.Type))
	out = wire.AppendQuote(append(out, `,"message":`...), problem.Message)
	return append(out, "}}"...)
}

// Opening implements wire.Codec.
func (Codec) Opening(event wire.Event) wire.Opening {
	switch nameOf(event) {
	case "interaction.created", "interaction.status_update":
		return wire.Opens
	}
	return wire.Begun
}

// errorType returns the type of an error: its code if it is a word, or otherwise Google's status.
func errorType(problem json.RawMessage) string {
	return cmp.Or(wire.Text(problem, "code"), wire.Text(problem, "status"), "error")
}
