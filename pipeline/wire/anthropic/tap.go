package anthropic

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

// listener rebuilds the message in a stream.
type listener struct {
	answer   wire.Answer
	blocks   []*streamed // by index
	kept     int         // bytes kept in blocks
	isBroken bool        // the message can't be rebuilt: too long, or of an unknown kind
}

// streamed is a block that arrives in deltas. Texts are kept undecoded, as the inside of JSON strings.
type streamed struct {
	start     json.RawMessage
	text      []byte
	thinking  []byte
	signature []byte
	input     []byte // decoded
	citations []byte // comma-separated
}

// maxBlocks limits the blocks of an answer.
const maxBlocks = 10_000

// Event reads the next event.
func (l *listener) Event(event wire.Event) {
	switch nameOf(event) {
	case "content_block_delta":
		l.delta(event.Data)
	case "content_block_start":
		l.start(event.Data)
	case "message_start":
		message := wire.Get(event.Data, "message")
		l.answer.Model = wire.Text(message, "model")
		l.answer.Reduced = isReduced(message)
		l.usage(wire.Get(message, "usage"))
	case "message_delta":
		l.answer.StopReason = wire.Text(wire.Get(event.Data, "delta"), "stop_reason")
		l.answer.Reduced = l.answer.Reduced || isReduced(event.Data)
		l.usage(wire.Get(event.Data, "usage"))
	case "message_stop":
		l.answer.Complete = true
	case "ping", "content_block_stop":
	default: // a gateway's error may have no type
		if problem := wire.ProblemOf(event); problem != nil {
			l.answer.ErrorType, l.answer.Error = wire.OpenAIErrorType(problem), wire.KeepError(problem)
		}
	}
}

// nameOf returns an event's name, which some providers put only in its data.
func nameOf(event wire.Event) string {
	if event.Name != "" {
		return event.Name
	}
	return wire.Text(event.Data, "type")
}

// usage reads a usage report; a later one replaces an earlier one.
func (l *listener) usage(raw json.RawMessage) {
	readUsage(&l.answer.Usage, raw)
	readServed(&l.answer, raw)
	if used := advisors(raw); len(used) > 0 {
		l.answer.Advisors = used
	}
	if used := compactions(raw); len(used) > 0 {
		l.answer.Compactions = used
	}
}

// start opens a block.
func (l *listener) start(data json.RawMessage) {
	index, ok := wire.Int(wire.Get(data, "index"))
	block := wire.Get(data, "content_block")
	if !ok || index != len(l.blocks) || index >= maxBlocks || block == nil {
		l.giveUp()
		return
	}
	if l.keeps(len(block)) {
		l.blocks = append(l.blocks, &streamed{start: append(json.RawMessage(nil), block...)})
	}
}

// delta adds to a block.
func (l *listener) delta(data json.RawMessage) {
	if l.isBroken {
		return
	}
	index, delta := -1, json.RawMessage(nil)
	for name, value := range wire.Members(data) {
		switch string(name) {
		case "index":
			index, _ = wire.Int(value)
		case "delta":
			delta = value
		}
	}
	if index < 0 || index >= len(l.blocks) {
		l.giveUp()
		return
	}
	if !l.keeps(len(delta)) {
		return
	}
	block := l.blocks[index]
	before := block.said()
	if !block.add(delta) {
		l.giveUp()
	}
	l.answer.Said += block.said() - before
}

// keeps counts bytes to be kept and reports whether they fit.
func (l *listener) keeps(size int) bool {
	if l.kept += size; l.kept > wire.MaxAnswer {
		l.giveUp()
	}
	return !l.isBroken
}

// giveUp drops the message; usage and end are still read.
func (l *listener) giveUp() { l.isBroken, l.blocks = true, nil }

// add adds a delta; it returns false for one of an unknown kind.
func (s *streamed) add(delta json.RawMessage) bool {
	kind := ""
	for name, value := range wire.Members(delta) {
		switch string(name) {
		case "type":
			kind, _ = wire.String(value)
		case "text":
			s.text = wire.AppendInside(s.text, value)
		case "thinking":
			s.thinking = wire.AppendInside(s.thinking, value)
		case "signature":
			s.signature = wire.AppendInside(s.signature, value)
		case "partial_json":
			s.input, _ = wire.AppendText(s.input, value)
		case "citation":
			if len(s.citations) > 0 {
				s.citations = append(s.citations, ',')
			}
			s.citations = append(s.citations, value...)
		default:
			s.start = wire.Set(s.start, string(name), append(json.RawMessage(nil), value...))
		}
	}
	switch kind {
	case "text_delta", "input_json_delta", "thinking_delta", "signature_delta", "citations_delta", "compaction_delta":
		return true
	}
	return false
}

// said is the number of bytes from the model in the block.
func (s *streamed) said() int { return len(s.text) + len(s.thinking) + len(s.input) }

// block returns the whole block; nil for an empty text.
func (s *streamed) block() json.RawMessage {
	raw := s.start
	for _, member := range []struct {
		name  string
		value []byte
	}{{"text", s.text}, {"thinking", s.thinking}, {"signature", s.signature}} {
		if len(member.value) > 0 {
			raw = wire.Set(raw, member.name, append(append([]byte{'"'}, member.value...), '"'))
		}
	}
	if len(s.input) > 0 && json.Valid(s.input) {
		raw = wire.Set(raw, "input", s.input)
	}
	if len(s.citations) > 0 {
		raw = wire.Set(raw, "citations", append(append([]byte{'['}, s.citations...), ']'))
	}
	if wire.Text(raw, "type") == "text" && strings.TrimSpace(wire.Text(raw, "text")) == "" {
		return nil
	}
	return raw
}

// Answer implements wire.Listener.
func (l *listener) Answer() wire.Answer {
	answer := l.answer
	if !answer.Complete || l.isBroken {
		return answer
	}
	var content []byte
	for _, block := range l.blocks {
		raw := block.block()
		if len(raw) == 0 {
			continue
		}
		if len(content) > 0 {
			content = append(content, ',')
		}
		content = append(content, raw...)
	}
	if len(content) > 0 {
		answer.Messages = []json.RawMessage{assistant(append(append([]byte{'['}, content...), ']'))}
		answer.Compactions = withSummaries(answer.Compactions, answer.Messages[0])
	}
	return answer
}

// Body reads an answer outside a stream.
func (*listener) Body(body json.RawMessage) wire.Answer {
	if problem := wire.ProblemOf(wire.Event{Data: body}); problem != nil {
		return wire.Answer{ErrorType: wire.OpenAIErrorType(problem), Error: wire.KeepError(problem)}
	}
	answer := wire.Answer{
		Model:      wire.Text(body, "model"),
		StopReason: wire.Text(body, "stop_reason"),
		Reduced:    isReduced(body),
		Complete:   wire.Text(body, "type") == "message",
	}
	readUsage(&answer.Usage, wire.Get(body, "usage"))
	readServed(&answer, wire.Get(body, "usage"))
	answer.Compactions, answer.Advisors = compactions(wire.Get(body, "usage")), advisors(wire.Get(body, "usage"))
	content := wire.Replace(wire.Get(body, "content"), func(_ int, block json.RawMessage) json.RawMessage {
		return (&streamed{start: block}).block()
	})
	if wire.HasElements(content) {
		answer.Messages = []json.RawMessage{assistant(content)}
		answer.Compactions = withSummaries(answer.Compactions, answer.Messages[0])
	}
	return answer
}

// compactions returns the usage of the API's compactions before it answered, which the total leaves out.
func compactions(usage json.RawMessage) []wire.Usage {
	var used []wire.Usage
	for _, iteration := range wire.Elements(wire.Get(usage, "iterations")) {
		if wire.Text(iteration, "type") == "compaction" {
			var one wire.Usage
			readUsage(&one, iteration)
			used = append(used, one)
		}
	}
	return used
}

// advisors returns the usage of other models that the API asked for advice, which the total leaves out
// (https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool).
func advisors(usage json.RawMessage) []wire.Advisor {
	var used []wire.Advisor
	for _, iteration := range wire.Elements(wire.Get(usage, "iterations")) {
		if wire.Text(iteration, "type") == "advisor_message" {
			one := wire.Advisor{Model: wire.Text(iteration, "model")}
			readUsage(&one.Usage, iteration)
			used = append(used, one)
		}
	}
	return used
}

// withSummaries returns the compactions of an answer, given the separately reported ones. Each compaction has
// left a block with a summary.
func withSummaries(used []wire.Usage, message json.RawMessage) []wire.Usage {
	summaries := 0
	for _, block := range wire.Elements(wire.Get(message, "content")) {
		if wire.Text(block, "type") == "compaction" && (!wire.IsNull(wire.Get(block, "content")) || !wire.IsNull(wire.Get(block, "encrypted_content"))) {
			summaries++
		}
	}
	for len(used) < summaries {
		used = append(used, wire.Usage{})
	}
	return used
}

// isReduced reports whether an answer is based on less than the whole prompt: thinking was dropped, or the
// API has edited or compacted the context.
func isReduced(answer json.RawMessage) bool {
	if wire.HasElements(wire.Get(answer, "input_transformations")) || wire.HasElements(wire.Get(wire.Get(answer, "context_management"), "applied_edits")) {
		return true
	}
	for _, iteration := range wire.Elements(wire.Get(wire.Get(answer, "usage"), "iterations")) {
		if wire.Text(iteration, "type") == "compaction" {
			return true
		}
	}
	return false
}

// assistant returns the message in which a client sends an answer back.
func assistant(content json.RawMessage) json.RawMessage {
	return append(append([]byte(`{"role":"assistant","content":`), content...), '}')
}

// readUsage reads the counts in raw; later ones replace earlier ones. It ignores prompt counts of zero,
// because some servers repeat the prompt's members as zeros.
func readUsage(usage *wire.Usage, raw json.RawMessage) {
	read, prompt := *usage, 0
	isOpenAI, isOwn := false, false
	for name, value := range wire.Members(raw) {
		var count *int
		switch string(name) {
		case "input_tokens":
			count = &read.Input
		case "cache_read_input_tokens":
			count, isOwn = &read.CacheRead, isOwn || !wire.IsNull(value)
		case "cache_creation_input_tokens":
			count = &read.CacheWrite
		case "output_tokens":
			count = &read.Output
		case "cache_creation":
			count, value = &read.CacheWrite1h, wire.Get(value, "ephemeral_1h_input_tokens")
		case "cached_tokens", "prompt_cache_hit_tokens", "prompt_tokens_details", "input_tokens_details":
			isOpenAI = true
			continue
		default:
			continue
		}
		if number, ok := wire.Count(value); ok {
			*count, read.Reported = number, true
			if count != &read.Output {
				prompt += number
			}
		}
	}
	if !read.Reported || isOpenAI && !isOwn {
		wire.ReadOpenAIUsage(&read, raw)
	} else if prompt == 0 && usage.Prompt() > 0 {
		read.Input, read.CacheRead, read.CacheWrite, read.CacheWrite1h = usage.Input, usage.CacheRead, usage.CacheWrite, usage.CacheWrite1h
	}
	*usage = read
}

// readServed reads the terms of an answer, and the tools that the provider ran for it, from a usage report.
func readServed(answer *wire.Answer, usage json.RawMessage) {
	answer.Served = wire.ServedOf(usage).Over(answer.Served)
	answer.ReadToolUses(usage)
}

// Interface guard.
var _ wire.Listener = (*listener)(nil)
