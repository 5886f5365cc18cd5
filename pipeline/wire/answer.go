package wire

import (
	"encoding/json"
	"time"
)

// Said is an answer in words that is given in the provider's place.
type Said struct {
	ID    string // without the format's prefix
	Model string
	Text  string
	At    time.Time // zero if unknown
}

// Answerer is a Codec that can write an answer of its own. It is whole, ends its turn, and
// reports a usage of nothing: no model was asked.
type Answerer interface {
	// Answer returns the body of the answer, a whole event stream or one JSON object. The
	// same words under the same id give the same bytes.
	Answer(said Said, stream bool) []byte
}

// AppendEvent appends an event of a stream whose data cannot fail to be encoded.
func AppendEvent(stream []byte, name string, data any) []byte {
	encoded, err := json.Marshal(data)
	if err != nil {
		return stream // callers pass strings, numbers, and lists of these
	}
	stream = append(append(append(stream, "event: "...), name...), "\ndata: "...)
	return append(append(stream, encoded...), "\n\n"...)
}
