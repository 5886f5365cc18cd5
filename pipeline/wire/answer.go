package wire

import (
	"encoding/json"
	"time"
)

// Said is a text answer given in the provider's place.
type Said struct {
	ID    string // without the format's prefix
	Model string
	Text  string
	At    time.Time // zero if unknown
}

// Answerer is a Codec that can write its own answer. The answer is complete, ends its turn, and reports a
// usage of zero, because no model was asked.
type Answerer interface {
	// Answer returns the body of the answer: a whole event stream or one JSON object. Equal input gives equal
	// bytes.
	Answer(said Said, stream bool) []byte
}

// AppendEvent appends an event to a stream. The data must be encodable.
func AppendEvent(stream []byte, name string, data any) []byte {
	encoded, err := json.Marshal(data)
	if err != nil {
		return stream // unreachable: callers pass strings, numbers, and lists of these
	}
	stream = append(append(append(stream, "event: "...), name...), "\ndata: "...)
	return append(append(stream, encoded...), "\n\n"...)
}
