package pipeline

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Exchange is one request on its way through the pipeline: what its modules see, what they
// have done, and the body that no module reaches.
type Exchange struct {
	View

	Codec wire.Codec
	Body  *wire.Envelope

	// Reply is the answer that a module gives in the provider's place; nil if the provider
	// is asked.
	Reply *Reply
}

// Pieces returns what the sealed body's list is made of.
func (e *Exchange) Pieces() []wire.Piece {
	if e.Projection == nil {
		return []wire.Piece{{From: 0, To: len(e.Digests)}}
	}
	pieces := make([]wire.Piece, 0, len(e.Projection.Parts)+1)
	for _, part := range e.Projection.Parts {
		pieces = append(pieces, wire.Piece{From: part.From, To: part.To, Raw: part.Raw})
	}
	return append(pieces, wire.Piece{From: e.Projection.Covers, To: len(e.Digests)})
}

// Originals returns the raw bytes of the body's messages from index from to to (excluded).
func (e *Exchange) Originals(from, to int) []json.RawMessage {
	raw := make([]json.RawMessage, 0, to-from)
	for i := from; i < to; i++ {
		raw = append(raw, e.Body.Element(i))
	}
	return raw
}
