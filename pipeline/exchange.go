package pipeline

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Exchange is a request on its way through the pipeline: the view of its modules, their changes, and the
// body, which modules can't access.
type Exchange struct {
	View

	Codec wire.Codec
	Body  *wire.Envelope

	// Reply is a module's answer in the provider's place; nil if the provider is asked.
	Reply *Reply
}

// Pieces returns the parts of the sealed body's list.
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
