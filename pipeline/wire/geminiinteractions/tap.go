package geminiinteractions

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"palimpsest/pipeline/wire"
)

// listener collects the steps of an answer.
type listener struct {
	answer   wire.Answer
	steps    []*building
	found    int  // tokens of the results of Google's tools
	kept     int  // bytes of steps
	isBroken bool // the steps exceed the limit together, or one can't be put together
}

// Event reads the next event.
func (l *listener) Event(event wire.Event) {
	if problem := wire.ProblemOf(event); problem != nil {
		l.answer.ErrorType, l.answer.Error = errorType(problem), wire.KeepError(problem)
		return
	}
	switch name := nameOf(event); name {
	case "step.start":
		l.start(event.Data)
	case "step.delta":
		l.add(event.Data)
	default:
		if whole := wire.Get(event.Data, "interaction"); whole != nil {
			l.read(whole)
		}
	}
}

// nameOf returns an event's name, which some servers put only in its data.
func nameOf(event wire.Event) string {
	if event.Name != "" {
		return event.Name
	}
	return wire.Text(event.Data, "event_type")
}

// start begins a step.
func (l *listener) start(event json.RawMessage) {
	index, _ := wire.Int(wire.Get(event, "index"))
	raw := wire.Get(event, "step")
	if raw == nil || !l.keep(len(raw)) {
		return
	}
	l.steps = append(l.steps, newBuilding(index, append(json.RawMessage(nil), raw...)))
}

// add adds a piece to a step.
func (l *listener) add(event json.RawMessage) {
	delta := wire.Get(event, "delta")
	l.answer.Said += said(delta)
	index, _ := wire.Int(wire.Get(event, "index"))
	for _, v := range slices.Backward(l.steps) {
		if v.index == index {
			if l.keep(len(delta)) {
				v.add(append(json.RawMessage(nil), delta...))
			}
			return
		}
	}
	l.isBroken = true // a piece of a step that never began
}

// said returns how many bytes of text, thinking or arguments a piece holds.
func said(delta json.RawMessage) int {
	raw := wire.Get(delta, "text")
	if raw == nil {
		raw = wire.Get(delta, "arguments")
	}
	if raw == nil {
		raw = wire.Get(wire.Get(delta, "content"), "text")
	}
	return max(0, len(raw)-len(`""`))
}

// keep counts kept bytes and reports whether they may be kept.
func (l *listener) keep(size int) bool {
	if l.kept += size; l.kept > wire.MaxAnswer {
		l.isBroken, l.steps = true, nil
	}
	return !l.isBroken
}

// read reads an interaction. A stream has one at its start and at its end.
func (l *listener) read(interaction json.RawMessage) {
	var steps, errors json.RawMessage
	for name, value := range wire.Members(interaction) {
		switch string(name) {
		case "id":
			l.answer.ID, _ = wire.String(value)
		case "model", "agent":
			if model, ok := wire.String(value); ok && model != "" {
				l.answer.Model = model
			}
		case "status":
			l.answer.StopReason, _ = wire.String(value)
		case "service_tier":
			l.answer.Served.Tier, _ = wire.String(value)
		case "usage":
			if readUsage(&l.answer, value) {
				l.found = count(value, "total_tool_use_tokens")
			}
		case "steps":
			steps = value
		case "errors":
			errors = value
		}
	}
	switch l.answer.StopReason {
	case "completed", "requires_action", "incomplete":
		l.answer.Complete = true
	case "failed", "cancelled", "budget_exceeded":
		for _, problem := range wire.Elements(errors) {
			l.answer.ErrorType, l.answer.Error = errorType(problem), wire.KeepError(problem)
			break
		}
	default:
		l.answer.StopReason = "" // not at its end
	}
	if l.answer.Complete && wire.HasElements(steps) {
		l.steps = nil
		for _, raw := range wire.Elements(steps) {
			if wire.Text(raw, "type") != userInput { // some answers repeat the input
				l.steps = append(l.steps, newBuilding(len(l.steps), append(json.RawMessage(nil), raw...)))
			}
		}
	}
}

// Body reads an answer outside a stream.
func (*listener) Body(body json.RawMessage) wire.Answer {
	whole := &listener{}
	if problem := wire.ProblemOf(wire.Event{Data: body}); problem != nil && wire.Get(body, "steps") == nil {
		return wire.Answer{ErrorType: errorType(problem), Error: wire.KeepError(problem)}
	}
	whole.read(body)
	return whole.Answer()
}

// Answer implements wire.Listener.
func (l *listener) Answer() wire.Answer {
	answer := l.answer
	answer.Tools = maps.Clone(answer.Tools)
	if answer.Complete && !l.isBroken {
		answer.Messages = l.messages()
		countTools(&answer)
	}
	answer.AddFound(l.found)
	return answer
}

// messages returns the steps as a client sends them back, or nil if one is not whole.
func (l *listener) messages() []json.RawMessage {
	var messages []json.RawMessage
	for _, step := range l.steps {
		raw, ok := step.whole()
		if !ok {
			return nil
		}
		messages = append(messages, raw)
	}
	return messages
}

// countTools counts the calls of Google's tools among the steps of an answer, for the tools that its usage does
// not count. A search counts once for each different query.
func countTools(answer *wire.Answer) {
	counts := map[string]int{}
	queries := map[string]bool{}
	for _, step := range answer.Messages {
		tool, isCall := strings.CutSuffix(wire.Text(step, "type"), "_call")
		if !isCall || !wire.IsBilledTool(tool) {
			continue
		}
		counts[tool]++
		if tool == googleSearch {
			for _, raw := range wire.Elements(wire.Get(wire.Get(step, "arguments"), "queries")) {
				if query, _ := wire.String(raw); strings.TrimSpace(query) != "" {
					queries[query] = true
				}
			}
		}
	}
	if len(queries) > 0 {
		counts[googleSearch] = len(queries)
	}
	for tool, uses := range counts {
		if _, counted := answer.Tools[tool]; !counted {
			answer.Use(tool, uses)
		}
	}
}

const googleSearch = "google_search"

// readUsage reads a usage and reports whether it has one. The input includes the cached tokens; thinking is
// counted beside the answer.
func readUsage(answer *wire.Answer, raw json.RawMessage) bool {
	input, known := wire.Int(wire.Get(raw, "total_input_tokens"))
	if !known || input == 0 && answer.Usage.Reported {
		return false
	}
	cached := min(count(raw, "total_cached_tokens"), max(0, input))
	answer.Usage = wire.Usage{
		Reported: true, CacheRead: cached, Input: max(0, input-cached),
		Output: count(raw, "total_output_tokens") + count(raw, "total_thought_tokens"),
	}
	for _, used := range wire.Elements(wire.Get(raw, "grounding_tool_count")) {
		if tool, uses := wire.Text(used, "type"), count(used, "count"); tool != "" && uses > 0 {
			answer.Use(tool, uses)
		}
	}
	return true
}

// count returns a number of an object; 0 if absent.
func count(object json.RawMessage, name string) int {
	number, _ := wire.Int(wire.Get(object, name))
	return max(0, number)
}

// building is a step that arrives in pieces.
type building struct {
	index     int
	kind      string
	step      json.RawMessage   // as it began, with the members of later pieces
	contents  []json.RawMessage // of an output, or of the summary of a thought
	text      strings.Builder   // of the content that may continue
	arguments strings.Builder
}

func newBuilding(index int, raw json.RawMessage) *building {
	return &building{index: index, kind: wire.Text(raw, "type"), step: raw}
}

// add adds a piece. Annotations are left out.
func (b *building) add(delta json.RawMessage) {
	switch kind := wire.Text(delta, "type"); kind {
	case "text":
		b.text.WriteString(wire.Text(delta, "text"))
	case "thought_summary":
		content := wire.Get(delta, "content")
		if wire.Text(content, "type") == "text" {
			b.text.WriteString(wire.Text(content, "text"))
			return
		}
		b.endText()
		b.contents = append(b.contents, content)
	case "arguments_delta":
		b.arguments.WriteString(wire.Text(delta, "arguments"))
	case "text_annotation_delta":
	case "thought_signature", b.kind:
		for name, value := range wire.Members(delta) {
			if string(name) != "type" {
				b.step = wire.Set(b.step, string(name), value)
			}
		}
	default: // an image, a sound
		b.endText()
		b.contents = append(b.contents, delta)
	}
}

// endText ends the content that later pieces of text would continue.
func (b *building) endText() {
	if b.text.Len() > 0 {
		b.contents = append(b.contents, textContent(wire.Quote(b.text.String())))
		b.text.Reset()
	}
}

// whole returns the step as a client sends it back; ok is false if its arguments are not JSON.
func (b *building) whole() (raw json.RawMessage, ok bool) {
	raw = b.step
	contents := b.contents
	if b.text.Len() > 0 {
		contents = append(slices.Clip(contents), textContent(wire.Quote(b.text.String())))
	}
	if len(contents) > 0 {
		member := "content"
		if b.kind == thought {
			member = "summary"
		}
		own := wire.Get(raw, member)
		if len(own) == 0 || own[0] != '[' {
			own = json.RawMessage("[]")
		}
		raw = wire.Set(raw, member, wire.AppendElements(own, contents...))
	}
	if b.arguments.Len() > 0 {
		if !json.Valid([]byte(b.arguments.String())) {
			return nil, false
		}
		raw = wire.Set(raw, "arguments", json.RawMessage(b.arguments.String()))
	}
	return raw, true
}

// Interface guard.
var _ wire.Listener = (*listener)(nil)
