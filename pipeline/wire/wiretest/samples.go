package wiretest

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Samples are the test cases of a format.
type Samples struct {
	// Body is a template of a request; "%s" is its list, including brackets.
	Body string

	Messages  []Message
	Same      []Same
	Distinct  []string // messages with pairwise different content
	Changes   []Change
	New       []New
	Appends   []AppendSample
	Instructs []InstructSample
	Requests  []Request
	Faults    []Fault
	Answers   []Answer
	Problem   string // the error body of Problem()
}

// Message is one element of a list and its expected parse.
type Message struct {
	Name  string
	Raw   string
	Role  conversation.Role
	Flags conversation.Flags
	// Blocks in one line each: kind, id, name and text, as Describe writes them.
	Blocks []string
}

// Same are messages with the same content.
type Same struct {
	Name string
	Raw  []string
}

// Change is a message in which one block gets a new text.
type Change struct {
	Name  string
	Raw   string
	Block int
	Text  string
	Want  string // "" if the change must be rejected
}

// New is a message that the proxy writes.
type New struct {
	Name    string
	Message conversation.Message
	Want    string // "" if it must be rejected
}

// Request is a body and its expected parse.
type Request struct {
	Name string
	Body string
	Want wire.Request
}

// Fault is a body that must be rejected with an error containing Error.
type Fault struct {
	Name  string
	Body  string
	Error string
}

// Answer is an answer on the wire and its expected parse.
type Answer struct {
	Name   string
	Stream string // the event stream; "" if absent
	Body   string // the same answer as one body; "" if absent
	Said   int    // bytes of text in the stream before it reports its usage
	Want   wire.Answer

	// Echo is the answer as a client sends it back. It must have the same content as Want.Messages.
	Echo []string
}

// streamed returns the expected parse of the answer's stream.
func (a *Answer) streamed() wire.Answer {
	want := a.Want
	if !want.Complete || !want.Usage.Reported {
		want.Said = a.Said
	}
	return want
}

// Problem returns our error for Samples.Problem.
func Problem() wire.Problem {
	return wire.Problem{
		Status: 401, Type: "authentication_error", Code: "invalid_api_key",
		Message: "unknown key <plm_…>: create one", RequestID: "req_1",
	}
}

// Raws returns JSON texts as raw messages.
func Raws(texts ...string) []json.RawMessage {
	raws := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		raws[i] = json.RawMessage(text)
	}
	return raws
}
