package sessiontest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Session is a whole session. It holds each message once and writes bodies on demand.
type Session struct {
	Options Options

	// Directives are the user's standing instructions, word for word and in order.
	Directives []string

	// Modified are the files that the session's edits changed, without duplicates, in the order of their
	// first change.
	Modified []string

	// Read are the files read, without duplicates, in the order of their first reading.
	Read []string

	// Facts are the identifiers that Options.Facts planted, in the order of their first occurrence: paths,
	// symbols, numbers, texts of errors. Each is in at least one message, and in later ones if the session
	// was long enough to use it again.
	Facts []string

	head     []byte            // the members before the list, "{" included
	list     string            // the list's name
	messages []json.RawMessage // its elements, without cache markers
	ends     []int             // number of messages in each step's body
}

// Generate writes a session. It panics if Options.Bind rejects its output, which means a bug in this package.
func Generate(seed uint64, options Options) *Session {
	options = options.withDefaults()
	s := &Session{Options: options, list: "messages"}
	plan := newPlan(seed, options)
	s.Directives, s.Modified, s.Read, s.Facts = plan.directives, plan.modified, plan.read, plan.facts
	switch options.Format {
	case conversation.OpenAIChat:
		s.writeChat(plan)
	case conversation.OpenAIResponses:
		s.list = "input"
		s.writeResponses(plan)
	case conversation.Gemini:
		s.list = "contents"
		s.writeGemini(plan)
	case conversation.GeminiInteractions:
		s.list = "input"
		s.writeInteractions(plan)
	default:
		s.writeAnthropic(plan)
	}
	return s
}

// Steps returns how many requests the client sends.
func (s *Session) Steps() int { return len(s.ends) }

// Messages returns the elements in the body of a step, without cache markers. Callers must not change them.
func (s *Session) Messages(step int) []json.RawMessage { return s.messages[:s.ends[step]] }

// Body writes the body of one step, which ends in a typed message or in tool results. Steps count from 0.
func (s *Session) Body(step int) []byte {
	messages := s.Messages(step)
	var body bytes.Buffer
	size := len(s.head) + len(s.list) + 64
	for _, message := range messages {
		size += len(message) + 1
	}
	body.Grow(size)
	body.Write(s.head)
	fmt.Fprintf(&body, "%q:[", s.list)
	for i, message := range messages {
		if i > 0 {
			body.WriteByte(',')
		}
		if i == len(messages)-1 && s.Options.CacheMarkers && s.Options.Format == conversation.Anthropic {
			message = marked(message)
		}
		body.Write(message)
	}
	body.WriteString("]}")
	return body.Bytes()
}

// Bodies yields every step with its body, one at a time.
func (s *Session) Bodies() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for step := range s.Steps() {
			if !yield(step, s.Body(step)) {
				return
			}
		}
	}
}

// add appends an element to the list.
func (s *Session) add(element string) {
	s.messages = append(s.messages, json.RawMessage(element))
}

// ask ends the body of the next step here.
func (s *Session) ask() { s.ends = append(s.ends, len(s.messages)) }

const marker = `,"cache_control":{"type":"ephemeral"}`

// marked puts a cache marker on the last block of a message that ends with its content list.
func marked(message json.RawMessage) json.RawMessage {
	rest, ok := strings.CutSuffix(string(message), "}]}")
	if !ok {
		return message
	}
	return json.RawMessage(rest + marker + "}]}")
}
