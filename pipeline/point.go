package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// PointedType is the Type of an event that tells of tool results that pointers stand in
// place of.
const PointedType = "pointed"

// Point puts text in place of a tool result, block of message, of which message source
// has the rest. The provider must not have seen the message yet; tokens is by how many
// o200k tokens it becomes longer, below 0. It stays so in every later request of the
// lane for as long as both messages are sent as they came.
func (e *Exchange) Point(module string, message, block, source int, text string, tokens int) {
	size := e.Size(e.Projection)
	e.Inserts = append(slices.Clip(e.Inserts), session.Insert{
		Message: message, Chain: e.Chain[message+1], Module: module, Text: plain(text), Tokens: tokens, Block: block + 1, Source: source,
	})
	e.Report.After += e.Size(e.Projection) - size
	e.countPointers(module)
}

// TakeOver puts the inserts of earlier requests into the prompt. Pointers do not stand
// where the provider takes out what they may point at.
func (e *Exchange) TakeOver(inserts []session.Insert) {
	e.Inserts = inserts
	if e.Request.TakesOut {
		e.Inserts = WithoutPointers(inserts)
	}
}

// Points reports whether a pointer stands in place of a block of a message.
func (e *Exchange) Points(message, block int) bool {
	return slices.ContainsFunc(e.Inserts, func(insert session.Insert) bool {
		return insert.IsPointer() && insert.Message == message && insert.Block == block+1 && insert.Stands(e.Projection)
	})
}

// WithoutPointers returns inserts without those that are pointers.
func WithoutPointers(inserts []session.Insert) []session.Insert {
	if !slices.ContainsFunc(inserts, isPointer) {
		return inserts
	}
	return slices.DeleteFunc(slices.Clone(inserts), isPointer)
}

func isPointer(insert session.Insert) bool { return insert.IsPointer() }

// unpoint takes pointers that did not come to stand out of the report.
func (e *Exchange) unpoint() {
	for i := range e.Report.Events {
		if e.Report.Events[i].Type == PointedType {
			e.countPointers(e.Report.Events[i].Module)
			return
		}
	}
}

// countPointers has the report tell of the pointers of this exchange that stand.
func (e *Exchange) countPointers(module string) {
	counts := map[string]int{"results": 0, "tokens": 0}
	for i := range e.Inserts {
		if insert := &e.Inserts[i]; insert.Number == 0 && insert.IsPointer() && insert.Stands(e.Projection) {
			counts["results"]++
			counts["tokens"] -= insert.Tokens
		}
	}
	e.Report.Events = slices.DeleteFunc(slices.Clone(e.Report.Events), func(event Event) bool { return event.Type == PointedType })
	if counts["results"] > 0 {
		e.Report.Events = append(e.Report.Events, Event{Module: module, Type: PointedType, Counts: counts})
	}
}

// holding returns a message with inserts at it.
func (e *Exchange) holding(raw json.RawMessage, inserts []*session.Insert) (json.RawMessage, error) {
	raw, err := WithPointers(e.Codec, raw, inserts)
	if texts := appended(inserts); err == nil && len(texts) > 0 {
		return e.Codec.Append(raw, texts...)
	}
	return raw, err
}

// WithPointers returns a message with the pointers among inserts in place of its results.
// A cache marker that stood on one of these stands on the message's last block.
func WithPointers(codec wire.Codec, raw json.RawMessage, inserts []*session.Insert) (json.RawMessage, error) {
	if !slices.ContainsFunc(inserts, (*session.Insert).IsPointer) {
		return raw, nil
	}
	message, err := codec.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("read message of a pointer: %w", err)
	}
	for _, insert := range inserts {
		if !insert.IsPointer() {
			continue
		}
		at := insert.Block - 1
		if at >= len(message.Blocks) || message.Blocks[at].Kind != conversation.ToolResult {
			return nil, fmt.Errorf("message %d has no result at block %d", insert.Message, at)
		}
		message.Replace(at, insert.Text)
	}
	shorter, err := codec.Encode(message)
	if err != nil {
		return nil, fmt.Errorf("write message of a pointer: %w", err)
	}
	if n := len(message.Markers); n > 0 {
		shorter = codec.Mark(shorter, message.Markers[n-1])
	}
	return shorter, nil
}

// appended returns the texts of the inserts that are blocks of their own.
func appended(inserts []*session.Insert) []string {
	var texts []string
	for _, insert := range inserts {
		if !insert.IsPointer() {
			texts = append(texts, insert.Text)
		}
	}
	return texts
}
