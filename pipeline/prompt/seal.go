package prompt

import (
	"encoding/json"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/wire"
)

// maxMarkers is how many cache markers a request may carry.
const maxMarkers = 4

// seal returns the body that goes to the provider and the beta value that it
// needs; empty if it needs none.
func seal(exchange *pipeline.Exchange) (body []byte, beta string) {
	pieces := exchange.Pieces()
	if exchange.Projection == nil || exchange.Projection.Covers == 0 {
		return exchange.Body.Seal(pieces), ""
	}
	if ttl := freeMarker(exchange); ttl != "" {
		pieces = mark(exchange, pieces, ttl)
	}
	if thinking := unbind(exchange); thinking != nil {
		return exchange.Body.Seal(pieces, wire.Member{Name: "thinking", Raw: thinking}), bindingBeta
	}
	return exchange.Body.Seal(pieces), ""
}

// freeMarker returns the time to live of a marker of ours at the end of the
// frozen prefix; empty if the client uses no markers or has none to spare. A
// marker must not live shorter than one behind it.
func freeMarker(exchange *pipeline.Exchange) string {
	used, ttl := exchange.Request.Markers, "5m"
	for _, part := range exchange.Projection.Parts {
		if part.Raw != nil {
			continue
		}
		for _, digest := range exchange.Digests[part.From:part.To] {
			used += digest.Markers
		}
	}
	for _, digest := range exchange.Digests[exchange.Projection.Covers:] {
		used += digest.Markers
		if digest.MarkerTTL == "1h" {
			ttl = "1h"
		}
	}
	if used == 0 || used >= maxMarkers {
		return ""
	}
	return ttl
}

// mark puts a cache marker on the last message of the frozen prefix.
func mark(exchange *pipeline.Exchange, pieces []wire.Piece, ttl string) []wire.Piece {
	last := len(pieces) - 2 // the last piece is the client's tail
	piece := pieces[last]
	if piece.Raw == nil {
		raw := exchange.Codec.Mark(exchange.Body.Element(piece.To-1), ttl)
		split := wire.Piece{From: piece.From, To: piece.To - 1}
		marked := wire.Piece{From: piece.To - 1, To: piece.To, Raw: raw}
		return append(pieces[:last:last], split, marked, pieces[last+1])
	}
	pieces[last].Raw = markLast(exchange.Codec, piece.Raw, ttl)
	return pieces
}

// markLast marks the last of comma-separated messages.
func markLast(codec wire.Codec, messages json.RawMessage, ttl string) json.RawMessage {
	list, err := wire.Open([]byte(`{"list":[`+string(messages)+`]}`), "list")
	if err != nil || list.Len() == 0 {
		return messages
	}
	last := list.Element(list.Len() - 1)
	head := messages[:len(messages)-len(last)]
	return append(slices.Clip(head), codec.Mark(last, ttl)...)
}
