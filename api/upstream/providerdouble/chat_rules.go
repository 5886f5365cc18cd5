package providerdouble

import (
	"fmt"
	"slices"
	"strings"
)

// check applies all rules for a whole request.
func (c *chatReader) check(r *chatRequest) *Rejection {
	if rejection := checkToolMessages(r); rejection != nil {
		return rejection
	}
	if r.breaks > 4 {
		return refuse("A maximum of 4 prompt cache breakpoints may be provided. Found %d.", r.breaks).at("messages")
	}
	r.tokens = c.config.reported(sumTokens(r.prompt()))
	if r.tokens > r.model.Window {
		return r.overflow()
	}
	return nil
}

// checkToolMessages requires one tool message per call right behind a message with tool calls, and a call for
// each tool message.
func checkToolMessages(r *chatRequest) *Rejection {
	var open, answered []string
	caller := -1
	for i, m := range r.messages {
		if m.role != "tool" {
			if len(open) > 0 {
				return unansweredCalls(i, open)
			}
			open, answered, caller = nil, nil, -1
			if len(m.calls) > 0 {
				open, caller = slices.Clone(m.calls), i
			}
			continue
		}
		position := slices.Index(open, m.callID)
		switch {
		case caller < 0:
			return refuse("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.").at(fmt.Sprintf("messages.[%d].role", i))
		case slices.Contains(answered, m.callID):
			return refuse("Duplicate value for 'tool_call_id' of '%s' in message[%d].", m.callID, i).at(fmt.Sprintf("messages.[%d].tool_call_id", i))
		case position < 0:
			return refuse("Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", m.callID).at(fmt.Sprintf("messages.[%d].tool_call_id", i))
		}
		open = slices.Delete(open, position, position+1)
		answered = append(answered, m.callID)
	}
	if len(open) > 0 {
		return unansweredCalls(len(r.messages), open)
	}
	return nil
}

func unansweredCalls(i int, open []string) *Rejection {
	return refuse("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s",
		strings.Join(open, ", ")).at(fmt.Sprintf("messages.[%d].role", i))
}

// prompt lists the positions of the prompt: tools, then messages.
func (r *chatRequest) prompt() []position {
	cacheKey, _ := r.members.text("prompt_cache_key")
	list := newPositions(r.modelID + "\x00" + cacheKey)
	for _, t := range r.tools {
		list.add("tool", t.sum, t.tokens)
	}
	for _, m := range r.messages {
		list.add(m.role, m.sum, m.tokens)
	}
	return list.all
}

func (r *chatRequest) shortest() int  { return r.model.MinCache }
func (r *chatRequest) maxOutput() int { return r.limit }
func (r *chatRequest) room() int      { return r.model.Window - r.tokens + r.model.MaxOutput }

func (r *chatRequest) overflow() *Rejection {
	return refuse("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.",
		r.model.Window, max(r.tokens, r.model.Window+1)).at("messages").coded(overLength)
}

func (r *chatRequest) about() Request {
	about := Request{Model: r.modelID, Stream: r.stream, Thinks: r.reasoning, Tokens: r.tokens}
	for _, m := range r.messages {
		switch m.role {
		case "assistant":
			about.Answers++
			about.Results = nil
		case "user":
			about.User, about.Results = m.text, nil
		case "tool":
			about.Results = append(about.Results, m.text)
		}
	}
	return about
}
