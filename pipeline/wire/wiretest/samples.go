package wiretest

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Samples are one format's cases.
type Samples struct {
	// Body is a template of a request; "%s" stands for its list, brackets included.
	Body string

	Messages  []Message
	Same      []Same
	Distinct  []string // messages of which no two say the same
	Changes   []Change
	New       []New
	Appends   []AppendSample
	Instructs []InstructSample
	Requests  []Request
	Faults    []Fault
	Answers   []Answer
	Problem   string // the error body of Problem()
}

// Message is one element of a list and what must be understood of it.
type Message struct {
	Name  string
	Raw   string
	Role  conversation.Role
	Flags conversation.Flags
	// Blocks in one line each: kind, id, name and text, as Describe writes them.
	Blocks []string
}

// Same are messages that say the same.
type Same struct {
	Name string
	Raw  []string
}

// Change is a message of which one block gets another text.
type Change struct {
	Name  string
	Raw   string
	Block int
	Text  string
	Want  string // empty: the change must be refused
}

// New is a message that the proxy writes.
type New struct {
	Name    string
	Message conversation.Message
	Want    string // empty: it must be refused
}

// Request is a body and what must be read from it.
type Request struct {
	Name string
	Body string
	Want wire.Request
}

// Fault is a body that must be refused with an error that holds Error.
type Fault struct {
	Name  string
	Body  string
	Error string
}

// Answer is an answer on the wire and what must be understood of it.
type Answer struct {
	Name   string
	Stream string // the event stream; empty if none
	Body   string // the same answer as one body; empty if none
	Said   int    // bytes that the stream says before it reports its usage
	Want   wire.Answer

	// Echo is what a client sends back of it: it must say the same as Want.Messages.
	Echo []string
}

// streamed returns what must be understood of the answer's stream.
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
