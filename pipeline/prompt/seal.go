package prompt

import (
	"bytes"
	"encoding/json"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/wire"
)

// maxMarkers is how many cache markers a request may carry.
const maxMarkers = 4

// The times to live of a cache marker.
const (
	fiveMinutes = "5m"
	oneHour     = "1h"
)

// bypass is why a history is read-only whose client asked for its prompt to be left alone.
const bypass = "bypass"

// seal makes the body that goes to the provider; asksUsage has its stream report
// the usage. memory is where a body that is not the client's own is put; allocated if nil.
func (p *Prompt) seal(asksUsage bool, memory func(size int) []byte) {
	exchange := p.Exchange
	pieces := exchange.Pieces()
	if exchange.Projection != nil && exchange.Projection.Covers > 0 {
		if ttl := freeMarker(exchange); ttl != "" {
			pieces, p.marked = mark(exchange, pieces, ttl), ttl
		}
	}
	release := p.release()
	if release.strip {
		pieces = withoutThinking(exchange, pieces)
	}
	pieces, instructions := exchange.WithInserts(pieces)
	members := append(slices.Clip(release.members), instructions...)
	if held := exchange.Request.Holds; held != "" {
		members = append(members, wire.Member{Name: held, Raw: json.RawMessage("null")})
	}
	if asker, is := exchange.Codec.(wire.UsageAsker); is && asksUsage && exchange.Request.Stream {
		if member, needed := asker.AskUsage(exchange.Body); needed {
			members, p.AsksUsage = append(members, member), true
		}
	}
	p.Body, p.Beta, p.released = exchange.Body.SealIn(memory, pieces, members...), release.beta, release.name()
}

// freeMarker returns the time to live of our marker at the end of the
// frozen prefix; empty if the client uses no markers or has none to spare. A
// marker must not live shorter than one behind it, nor than those that went with
// the messages it stands for.
func freeMarker(exchange *pipeline.Exchange) string {
	used, moved, ttl := exchange.Request.Markers, 0, fiveMinutes
	if automatic, _ := exchange.Body.Member("cache_control"); wire.Text(automatic, "ttl") == oneHour {
		ttl = oneHour // it stands behind everything
	}
	for _, part := range exchange.Projection.Parts {
		for _, digest := range exchange.Digests[part.From:part.To] {
			if part.Raw == nil {
				used += digest.Markers
				continue
			}
			moved += digest.Markers
			if digest.MarkerTTL == oneHour {
				ttl = oneHour
			}
		}
	}
	for _, digest := range exchange.Digests[exchange.Projection.Covers:] {
		used += digest.Markers
		if digest.MarkerTTL == oneHour {
			ttl = oneHour
		}
	}
	if used+moved == 0 || used >= maxMarkers {
		return ""
	}
	return ttl
}

// mark puts a cache marker on the last message of the frozen prefix that may
// carry one. Where the client has a marker there, that is enough.
func mark(exchange *pipeline.Exchange, pieces []wire.Piece, ttl string) []wire.Piece {
	for last := len(pieces) - 2; last >= 0; last-- { // the last piece is the client's tail
		piece := pieces[last]
		if piece.Raw != nil {
			if marked := markLast(exchange.Codec, piece.Raw, ttl); !bytes.Equal(marked, piece.Raw) {
				pieces[last].Raw = marked
				return pieces
			}
			continue
		}
		for i := piece.To - 1; i >= piece.From; i-- {
			if exchange.Digests[i].Markers > 0 {
				return pieces
			}
			raw := exchange.Body.Element(i)
			if marked := exchange.Codec.Mark(raw, ttl); !bytes.Equal(marked, raw) {
				return slices.Replace(pieces, last, last+1,
					wire.Piece{From: piece.From, To: i}, wire.Piece{From: i, To: i + 1, Raw: marked}, wire.Piece{From: i + 1, To: piece.To})
			}
		}
	}
	return pieces
}

// markLast marks the last of comma-separated messages that may carry a marker.
func markLast(codec wire.Codec, messages json.RawMessage, ttl string) json.RawMessage {
	list, err := wire.Open([]byte(`{"list":[`+string(messages)+`]}`), "list")
	if err != nil || list.Len() == 0 {
		return messages
	}
	last := list.Element(list.Len() - 1)
	head := messages[:len(messages)-len(last)]
	return append(slices.Clip(head), codec.Mark(last, ttl)...)
}
