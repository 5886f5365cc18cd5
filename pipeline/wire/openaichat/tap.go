package openaichat

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// listener rebuilds the first choice of a stream.
type listener struct {
	answer    wire.Answer
	content   []byte // texts are kept undecoded, as the inside of JSON strings
	refusal   []byte
	reasoning []byte
	audio     []byte // id of a spoken answer, as JSON; its sound is not sent back
	calls     []*streamedCall
	kept      int  // bytes kept of the message
	isBroken  bool // the message can't be rebuilt: too long, or of an unknown kind
}

// streamedCall is a tool call that arrives in deltas.
type streamedCall struct {
	id, name string
	isCustom bool
	text     []byte // arguments or input, as the inside of a JSON string
}

// maxCalls limits the tool calls of an answer.
const maxCalls = 1000

// Event reads the next chunk.
func (l *listener) Event(event wire.Event) {
	if string(event.Data) == "[DONE]" {
		l.answer.Complete = true
		return
	}
	isChunk := false
	for name, value := range wire.Members(event.Data) {
		switch string(name) {
		case "choices":
			isChunk = true
			for _, choice := range wire.Elements(value) {
				l.choice(choice)
			}
		case "error":
			isChunk = false
		case "usage", "usageMetadata", "usage_metadata", "meta": // the last three are Google's and Cohere's
			wire.ReadOpenAIUsage(&l.answer.Usage, value)
			l.answer.ReadToolUses(value)
		case "service_tier":
			l.answer.Served.Tier, _ = wire.String(value)
		case "x_groq":
			wire.ReadOpenAIUsage(&l.answer.Usage, wire.Get(value, "usage"))
		case "model":
			if l.answer.Model == "" {
				l.answer.Model, _ = wire.String(value)
			}
		}
	}
	if isChunk {
		return
	}
	if problem := wire.ProblemOf(event); problem != nil {
		l.fail(problem)
	}
}

// fail records an error.
func (l *listener) fail(problem json.RawMessage) {
	l.answer.ErrorType, l.answer.Error = wire.OpenAIErrorType(problem), wire.KeepError(problem)
}

// choice reads a choice of a chunk. Only the first choice continues a conversation.
func (l *listener) choice(choice json.RawMessage) {
	index, delta := 0, json.RawMessage(nil)
	reason := ""
	for name, value := range wire.Members(choice) {
		switch string(name) {
		case "index":
			index, _ = wire.Int(value)
		case "delta":
			delta = value
		case "finish_reason":
			reason, _ = wire.String(value)
		case "usage": // Kimi
			wire.ReadOpenAIUsage(&l.answer.Usage, value)
		case "error": // OpenRouter
			if !wire.IsNull(value) {
				l.fail(value)
			}
		}
	}
	if index != 0 {
		return
	}
	if reason != "" {
		l.answer.StopReason, l.answer.Complete = reason, true
	}
	if l.kept += len(delta); l.kept > wire.MaxAnswer {
		l.giveUp()
	}
	if !l.isBroken {
		l.delta(delta)
	}
}

// giveUp drops the message; usage and end are still read.
func (l *listener) giveUp() {
	l.isBroken = true
	l.content, l.refusal, l.reasoning, l.audio, l.calls = nil, nil, nil, nil, nil
}

// delta adds to the message.
func (l *listener) delta(delta json.RawMessage) {
	for name, value := range wire.Members(delta) {
		switch string(name) {
		case "content":
			l.content = l.say(l.content, value)
		case "refusal":
			l.refusal = l.say(l.refusal, value)
		case "reasoning_content":
			l.reasoning = l.say(l.reasoning, value)
		case "tool_calls":
			for _, call := range wire.Elements(value) {
				l.call(call)
			}
		case "audio":
			if id := wire.Get(value, "id"); id != nil {
				l.audio = append(l.audio[:0], id...)
			}
		case "function_call":
			if !wire.IsNull(value) {
				l.giveUp()
			}
		}
	}
}

// call adds to a tool call. Some providers omit the index, so that an id starts the next call.
func (l *listener) call(delta json.RawMessage) {
	id := wire.Text(delta, "id")
	index, ok := wire.Int(wire.Get(delta, "index"))
	if !ok {
		index = len(l.calls) - 1
		if id != "" || index < 0 {
			index++
		}
	}
	if index == len(l.calls) && index < maxCalls {
		l.calls = append(l.calls, &streamedCall{})
	}
	if index < 0 || index >= len(l.calls) {
		l.giveUp()
		return
	}
	call := l.calls[index]
	if id != "" {
		call.id = id
	}
	body, member := wire.Get(delta, "function"), "arguments"
	if custom := wire.Get(delta, "custom"); custom != nil {
		body, member, call.isCustom = custom, "input", true
	}
	call.name += wire.Text(body, "name")
	call.text = l.say(call.text, wire.Get(body, member))
}

// say appends the inside of a JSON string from the model.
func (l *listener) say(text []byte, value json.RawMessage) []byte {
	said := wire.AppendInside(text, value)
	l.answer.Said += len(said) - len(text)
	return said
}

// Answer implements wire.Listener.
func (l *listener) Answer() wire.Answer {
	answer := l.answer
	isEmpty := len(l.content)+len(l.refusal)+len(l.audio)+len(l.calls) == 0
	if !answer.Complete || l.isBroken || isEmpty {
		return answer
	}
	out := []byte(`{"role":"assistant","content":null`)
	if len(l.content) > 0 {
		out = appendInsideQuotes(out[:len(out)-len("null")], l.content)
	}
	if len(l.refusal) > 0 {
		out = appendInsideQuotes(append(out, `,"refusal":`...), l.refusal)
	}
	if len(l.reasoning) > 0 {
		out = appendInsideQuotes(append(out, `,"reasoning_content":`...), l.reasoning)
	}
	if len(l.audio) > 0 {
		out = append(append(append(out, `,"audio":{"id":`...), l.audio...), '}')
	}
	for i, call := range l.calls {
		if i == 0 {
			out = append(out, `,"tool_calls":[`...)
		} else {
			out = append(out, ',')
		}
		out = call.append(out)
	}
	if len(l.calls) > 0 {
		out = append(out, ']')
	}
	answer.Messages = []json.RawMessage{append(out, '}')}
	return answer
}

// append appends the whole call.
func (c *streamedCall) append(out []byte) []byte {
	kind, member := "function", "arguments"
	if c.isCustom {
		kind, member = "custom", "input"
	}
	out = wire.AppendQuote(append(out, `{"id":`...), c.id)
	out = append(out, `,"type":"`+kind+`","`+kind+`":{"name":`...)
	out = append(wire.AppendQuote(out, c.name), `,"`+member+`":`...)
	return append(appendInsideQuotes(out, c.text), "}}"...)
}

func appendInsideQuotes(out, inside []byte) []byte {
	return append(append(append(out, '"'), inside...), '"')
}

// Body reads an answer outside a stream.
func (*listener) Body(body json.RawMessage) wire.Answer {
	if wire.Get(body, "choices") == nil || !wire.IsNull(wire.Get(body, "error")) {
		if problem := wire.ProblemOf(wire.Event{Data: body}); problem != nil {
			return wire.Answer{ErrorType: wire.OpenAIErrorType(problem), Error: wire.KeepError(problem)}
		}
	}
	answer := wire.Answer{Model: wire.Text(body, "model"), Served: wire.ServedOf(body)}
	for name, value := range wire.Members(body) {
		switch string(name) {
		case "usage", "usageMetadata", "usage_metadata", "meta":
			wire.ReadOpenAIUsage(&answer.Usage, value)
			answer.ReadToolUses(value)
		}
	}
	for _, choice := range wire.Elements(wire.Get(body, "choices")) {
		answer.StopReason = wire.Text(choice, "finish_reason")
		answer.Complete = answer.StopReason != ""
		if message := wire.Get(choice, "message"); message != nil && answer.Complete {
			answer.Messages = []json.RawMessage{message}
		}
		if problem := wire.Get(choice, "error"); !wire.IsNull(problem) {
			answer.ErrorType, answer.Error = wire.OpenAIErrorType(problem), wire.KeepError(problem)
		}
		wire.ReadOpenAIUsage(&answer.Usage, wire.Get(choice, "usage"))
		break
	}
	return answer
}

// Interface guard.
var _ wire.Listener = (*listener)(nil)
