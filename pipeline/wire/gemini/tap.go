package gemini

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

// listener collects the parts of an answer.
type listener struct {
	answer   wire.Answer
	tools    toolUses
	found    int // tokens of the results of Google's tools
	parts    []json.RawMessage
	kept     int  // bytes of parts
	isBroken bool // the parts exceed the limit together
}

// Event reads the next chunk, which has the form of a whole answer.
func (l *listener) Event(event wire.Event) {
	if problem := wire.ProblemOf(event); problem != nil {
		l.answer.ErrorType, l.answer.Error = errorType(problem), wire.KeepError(problem)
		return
	}
	l.read(event.Data)
}

// Body reads an answer outside a stream, or the chunks of a stream in one array.
func (*listener) Body(body json.RawMessage) wire.Answer {
	whole := &listener{}
	if len(body) > 0 && body[0] == '[' {
		for _, chunk := range wire.Elements(body) {
			whole.Event(wire.Event{Data: chunk})
		}
	} else {
		whole.Event(wire.Event{Data: body})
	}
	answer := whole.Answer()
	answer.Said = 0
	return answer
}

// Answer implements wire.Listener.
func (l *listener) Answer() wire.Answer {
	answer := l.answer
	l.tools.tell(&answer)
	answer.AddFound(l.found)
	if answer.Complete && len(l.parts) > 0 {
		answer.Messages = []json.RawMessage{l.message()}
	}
	return answer
}

// read reads a chunk.
func (l *listener) read(chunk json.RawMessage) {
	for name, value := range wire.Members(chunk) {
		switch string(name) {
		case "candidates":
			for _, candidate := range wire.Elements(value) {
				l.candidate(candidate)
				break // clients continue with the first
			}
		case "promptFeedback":
			if reason := wire.Text(value, "blockReason"); reason != "" {
				l.answer.StopReason, l.answer.Complete = strings.ToLower(reason), true
			}
		case "usageMetadata":
			if readUsage(&l.answer.Usage, value) {
				l.found = count(wire.Get(value, "toolUsePromptTokenCount"))
			}
			l.tools.readUsage(value)
			if tier := wire.Text(value, "serviceTier"); tier != "" {
				l.answer.Served.Tier = strings.ToLower(tier)
			}
		case "modelVersion":
			l.answer.Model, _ = wire.String(value)
		}
	}
}

// candidate reads a candidate of a chunk.
func (l *listener) candidate(candidate json.RawMessage) {
	for _, raw := range wire.Elements(wire.Get(wire.Get(candidate, "content"), "parts")) {
		l.answer.Said += len(readPart(raw).data)
		l.tools.readPart(raw)
		l.keep(raw)
	}
	l.tools.readCandidate(candidate)
	if reason := wire.Text(candidate, "finishReason"); reason != "" && reason != "FINISH_REASON_UNSPECIFIED" {
		l.answer.StopReason, l.answer.Complete = strings.ToLower(reason), true
	}
}

// keep keeps a part.
func (l *listener) keep(raw json.RawMessage) {
	if l.isBroken {
		return
	}
	if l.kept += len(raw); l.kept > wire.MaxAnswer {
		l.isBroken, l.parts = true, nil
		return
	}
	l.parts = append(l.parts, append(json.RawMessage(nil), raw...))
}

// message returns the answer's content. Texts that follow each other become one part, as in the history that
// clients send back.
func (l *listener) message() json.RawMessage {
	out := []byte(`{"role":"model","parts":[`)
	for i := 0; i < len(l.parts); {
		if i > 0 {
			out = append(out, ',')
		}
		var said []byte
		first, next := readPart(l.parts[i]), i
		for ; next < len(l.parts) && isMerged(first, readPart(l.parts[next])); next++ {
			more, _ := wire.String(readPart(l.parts[next]).data)
			said = append(said, more...)
		}
		if next-i > 1 {
			out, i = append(out, wire.Set(l.parts[i], "text", wire.Quote(string(said)))...), next
			continue
		}
		out, i = append(out, l.parts[i]...), i+1
	}
	return append(out, "]}"...)
}

// isMerged reports whether a part continues the text of an earlier one. A signature keeps its part alone.
func isMerged(first, next part) bool {
	return first.kind == next.kind && (first.kind == text || first.kind == thought) && !first.isSigned && !next.isSigned
}

// readUsage reads a usage and reports whether it has one. The prompt includes the cached tokens; thinking is
// counted beside the answer.
func readUsage(usage *wire.Usage, raw json.RawMessage) bool {
	prompt, known := wire.Int(wire.Get(raw, "promptTokenCount"))
	if !known || prompt == 0 && usage.Reported {
		return false
	}
	cached := min(count(wire.Get(raw, "cachedContentTokenCount")), max(0, prompt))
	*usage = wire.Usage{
		Reported: true, CacheRead: cached, Input: max(0, prompt-cached),
		Output: count(wire.Get(raw, "candidatesTokenCount")) + count(wire.Get(raw, "thoughtsTokenCount")),
	}
	return true
}

// errorType returns the type of an error: Google's status.
func errorType(problem json.RawMessage) string {
	if status := wire.Text(problem, "status"); status != "" {
		return status
	}
	return "error"
}

// Interface guard.
var _ wire.Listener = (*listener)(nil)
