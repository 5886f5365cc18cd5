package openairesponses

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

// listener collects the items of a stream.
type listener struct {
	answer   wire.Answer
	items    []json.RawMessage
	kept     int  // bytes of items
	isBroken bool // the items exceed the limit together
}

// Event reads the next event.
func (l *listener) Event(event wire.Event) {
	switch name := nameOf(event); name {
	case "response.output_item.done":
		l.item(wire.Get(event.Data, "item"))
	case "response.created":
		l.answer.Model = wire.Text(wire.Get(event.Data, "response"), "model")
	case "response.completed", "response.incomplete", "response.failed":
		l.end(wire.Get(event.Data, "response"))
		if !l.answer.Usage.Reported {
			wire.ReadOpenAIUsage(&l.answer.Usage, wire.Get(event.Data, "usage"))
		}
	case "error", "": // a gateway's error may have no type
		if problem := wire.ProblemOf(event); problem != nil {
			l.answer.ErrorType, l.answer.Error = wire.OpenAIErrorType(problem), wire.KeepError(problem)
		}
	default:
		if strings.HasSuffix(name, ".delta") && !strings.HasPrefix(name, "response.audio.") { // sound is not text
			l.answer.Said += max(0, len(wire.Get(event.Data, "delta"))-len(`""`))
		}
	}
}

// nameOf returns an event's name, which some providers put only in its data.
func nameOf(event wire.Event) string {
	if event.Name != "" {
		return event.Name
	}
	return firstType(event.Data)
}

// firstType returns an event's type without reading further.
func firstType(data json.RawMessage) string {
	for name, value := range wire.Members(data) {
		if string(name) == "type" {
			text, _ := wire.String(value)
			return text
		}
	}
	return ""
}

// item keeps a complete item.
func (l *listener) item(item json.RawMessage) {
	if item == nil || l.isBroken {
		return
	}
	if l.kept += len(item); l.kept > wire.MaxAnswer {
		l.isBroken, l.items = true, nil
		return
	}
	l.items = append(l.items, append(json.RawMessage(nil), item...))
}

// end reads the whole response, which comes last.
func (l *listener) end(response json.RawMessage) {
	whole := readResponse(response)
	if whole.Model == "" {
		whole.Model = l.answer.Model
	}
	if l.isBroken || len(whole.Messages) < len(l.items) {
		whole.Messages = l.items // some providers omit the output at the end
	} else {
		for i, item := range whole.Messages {
			whole.Messages[i] = append(json.RawMessage(nil), item...)
		}
	}
	if !whole.Complete {
		whole.Messages = nil
	}
	whole.Compactions, whole.Said = compactions(whole.Messages), l.answer.Said
	l.answer, l.items = whole, nil
}

// Answer implements wire.Listener.
func (l *listener) Answer() wire.Answer { return l.answer }

// Body reads an answer outside a stream.
func (*listener) Body(body json.RawMessage) wire.Answer {
	if wire.Get(body, "output") == nil {
		if problem := wire.ProblemOf(wire.Event{Data: body}); problem != nil {
			return wire.Answer{ErrorType: wire.OpenAIErrorType(problem), Error: wire.KeepError(problem)}
		}
	}
	return readResponse(body)
}

// readResponse reads a response object. The messages share its memory.
func readResponse(response json.RawMessage) wire.Answer {
	var answer wire.Answer
	var output json.RawMessage
	for name, value := range wire.Members(response) {
		switch string(name) {
		case "id":
			answer.ID, _ = wire.String(value)
		case "model":
			answer.Model, _ = wire.String(value)
		case "status":
			answer.StopReason, _ = wire.String(value)
		case "output":
			output = value
		case "service_tier":
			answer.Served.Tier, _ = wire.String(value)
		case "input_transformations":
			answer.Reduced = wire.HasElements(value)
		case "usage":
			wire.ReadOpenAIUsage(&answer.Usage, value)
		case "error":
			if !wire.IsNull(value) {
				answer.ErrorType, answer.Error = wire.OpenAIErrorType(value), wire.KeepError(value)
			}
		}
	}
	switch answer.StopReason {
	case "completed":
		answer.Complete = true
	case "incomplete":
		answer.Complete = true
		if reason := wire.Text(wire.Get(response, "incomplete_details"), "reason"); reason != "" {
			answer.StopReason = reason
		}
	}
	countTools(&answer, output)
	if !answer.Complete {
		return answer
	}
	for _, item := range wire.Elements(output) {
		answer.Messages = append(answer.Messages, item)
	}
	answer.Compactions = compactions(answer.Messages)
	return answer
}

// countTools counts the calls of provider-run tools among the items of an answer.
func countTools(answer *wire.Answer, output json.RawMessage) {
	for _, item := range wire.Elements(output) {
		if tool, isCall := strings.CutSuffix(firstType(item), "_call"); isCall && wire.IsBilledTool(tool) {
			answer.Use(tool, answer.Tools[tool]+1)
		}
	}
}

// compactions counts the compactions among the items of an answer. Each entry is empty, because the answer's
// usage includes their tokens.
func compactions(items []json.RawMessage) []wire.Usage {
	var used []wire.Usage
	for _, item := range items {
		if firstType(item) == "compaction" {
			used = append(used, wire.Usage{})
		}
	}
	return used
}

// Interface guard.
var _ wire.Listener = (*listener)(nil)
