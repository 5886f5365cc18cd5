package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// maxMarkers is how many cache markers a request may carry.
const maxMarkers = 4

// The times to live of a cache marker.
const (
	fiveMinutes = "5m"
	oneHour     = "1h"
)

// bypass is the read-only reason of a history whose client asked to leave its prompt unchanged.
const bypass = "bypass"

// seal makes the body for the provider. asksUsage adds a usage report to its stream. memory returns the bytes
// for a rewritten body, allocated if memory is nil.
func (p *Prompt) seal(asksUsage bool, memory func(size int) []byte) {
	exchange := p.Exchange
	pieces := exchange.Pieces()
	if exchange.Lane.Projection != nil && exchange.Lane.Projection.Covers > 0 {
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

// freeMarker returns the lifetime of our marker at the end of the frozen prefix, or "" if the client uses no
// markers or has no marker to spare. A marker must not have a shorter lifetime than a later one, or than the
// markers of the messages that the prefix replaces.
func freeMarker(exchange *pipeline.Exchange) string {
	used, moved, ttl := exchange.Request.Markers, 0, fiveMinutes
	if automatic, _ := exchange.Body.Member("cache_control"); wire.Text(automatic, "ttl") == oneHour {
		ttl = oneHour // the automatic marker is behind everything
	}
	for _, part := range exchange.Lane.Projection.Parts {
		for _, digest := range exchange.Conversation.Digests[part.From:part.To] {
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
	for _, digest := range exchange.Conversation.Digests[exchange.Lane.Projection.Covers:] {
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

// mark puts a cache marker on the last message of the frozen prefix that may carry one, unless the client
// already has a marker there.
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
			if exchange.Conversation.Digests[i].Markers > 0 {
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

// guarded runs find, which finds a prompt's lane and decides its projection. After a panic outside the
// modules, the prompt goes out with the projection from before, and its session is not recorded.
func (p *Prompt) guarded(find func()) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		exchange := p.Exchange
		fell := "original"
		exchange.Lane.Projection = p.earlier.standing
		if p.earlier.standing != nil {
			fell = fmt.Sprintf("projection %d", p.earlier.standing.Number)
		}
		exchange.Lane.Inserts = slices.DeleteFunc(slices.Clone(exchange.Lane.Inserts), func(insert session.Insert) bool { return insert.Number == 0 })
		p.Lane, p.Trial, p.fresh = nil, nil, nil
		exchange.Report = exchange.Standing()
		exchange.Report.Events = []pipeline.ReportEntry{{
			Module: "prompt", Type: "failed", Reason: fmt.Sprintf("panicked: %v", value), FellBackTo: fell,
		}}
	}()
	find()
}

// rehearse runs the pipeline on a copy of an exchange and returns the report. It neither stores the result
// nor changes the lane.
func rehearse(ctx context.Context, chain Chain, exchange pipeline.Exchange) *pipeline.Report {
	exchange.Committer = pipeline.Forgetful{}
	chain.Process(ctx, &exchange)
	return &exchange.Report
}
