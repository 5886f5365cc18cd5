package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// PointedType is the Type of an event that reports tool results replaced by pointers.
const PointedType = "pointed"

// TakeOver puts the inserts of earlier requests into the prompt. It leaves out pointers if the provider may
// remove the content that they point at.
func (e *Exchange) TakeOver(inserts []session.Insert) {
	e.Inserts = inserts
	if e.Request.TakesOut {
		e.Inserts = WithoutPointers(inserts)
	}
}

// WithoutPointers returns inserts without the pointers.
func WithoutPointers(inserts []session.Insert) []session.Insert {
	if !slices.ContainsFunc(inserts, isPointer) {
		return inserts
	}
	return slices.DeleteFunc(slices.Clone(inserts), isPointer)
}

func isPointer(insert session.Insert) bool { return insert.IsPointer() }

// holding returns a message with its inserts.
func (e *Exchange) holding(raw json.RawMessage, inserts []*session.Insert) (json.RawMessage, error) {
	raw, err := WithPointers(e.Codec, raw, inserts)
	if texts := appended(inserts); err == nil && len(texts) > 0 {
		return e.Codec.Append(raw, texts...)
	}
	return raw, err
}

// WithPointers returns a message whose results are replaced by the pointers among inserts. A cache marker on
// a replaced result moves to the message's last block.
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

// appended returns the texts of the inserts with separate blocks.
func appended(inserts []*session.Insert) []string {
	var texts []string
	for _, insert := range inserts {
		if !insert.IsPointer() {
			texts = append(texts, insert.Text)
		}
	}
	return texts
}

// unpoint removes pointers that did not take effect from the report.
func (e *Exchange) unpoint() {
	for i := range e.Report.Events {
		if e.Report.Events[i].Type == PointedType {
			e.Report.countPointers(&e.View, e.Report.Events[i].Module)
			return
		}
	}
}

// countPointers reports this exchange's active pointers.
func (r *Report) countPointers(view *View, module string) {
	counts := map[string]int{"results": 0, "tokens": 0}
	for i := range view.Inserts {
		if insert := &view.Inserts[i]; insert.Number == 0 && insert.IsPointer() && insert.Stands(view.Projection) {
			counts["results"]++
			counts["tokens"] -= insert.Tokens
		}
	}
	r.Events = slices.DeleteFunc(slices.Clone(r.Events), func(event ReportEntry) bool { return event.Type == PointedType })
	if counts["results"] > 0 {
		r.Events = append(r.Events, ReportEntry{Module: module, Type: PointedType, Counts: counts})
	}
}
