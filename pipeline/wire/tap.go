package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// MaxAnswer is the longest answer whose messages a tap rebuilds, in bytes. In longer streams it reads only
// the usage. It ignores longer bodies.
const MaxAnswer = 16 << 20

// Listener parses the answers of one format.
type Listener interface {
	// Event takes the next event of a stream. It must not keep its data.
	Event(Event)

	// Answer returns the information from the events so far.
	Answer() Answer

	// Body reads a whole answer outside a stream.
	Body(json.RawMessage) Answer
}

// NewTap returns a tap that makes listener read an answer. A JSON body is read as JSON even if a stream was
// expected, because providers send errors that way.
func NewTap(stream bool, listener Listener) Tap {
	return &tap{listener: listener, stream: stream}
}

type tap struct {
	listener Listener
	stream   bool
	begun    bool // the first byte other than white space has arrived
	split    Splitter
	body     []byte
	isLong   bool // the body exceeds MaxAnswer and was dropped
	failure  string
}

// Write reads the next bytes of the answer.
func (t *tap) Write(p []byte) (int, error) {
	if !t.begun {
		if start := bytes.TrimLeft(p, " \t\r\n"); len(start) > 0 {
			t.begun = true
			t.stream = t.stream && start[0] != '{' && start[0] != '['
		}
	}
	switch {
	case t.stream:
		t.split.Write(p, t.event)
	case t.isLong || len(t.body)+len(p) > MaxAnswer:
		t.isLong, t.body = true, nil
	default:
		t.body = append(t.body, p...)
	}
	return len(p), nil
}

// event passes an event to the listener. If the listener panics, the event is skipped, and later events are
// still read because they may hold the usage.
func (t *tap) event(event Event) {
	defer t.survive()
	t.listener.Event(event)
}

// survive recovers from a panic and keeps the first one, because there may be one for each event.
func (t *tap) survive() {
	if value := recover(); value != nil && t.failure == "" {
		t.failure = fmt.Sprintf("%v\n%s", value, debug.Stack())
	}
}

// Answer returns the answer so far.
func (t *tap) Answer() Answer {
	answer := t.read()
	if t.failure != "" {
		answer.Failure, answer.Messages, answer.Complete = t.failure, nil, false
	} else if t.stream && answer.Complete && answer.Usage.Reported {
		answer.Said = 0
	}
	return answer
}

func (t *tap) read() (answer Answer) {
	defer t.survive()
	if t.stream {
		t.split.Flush(t.event)
		return t.listener.Answer()
	}
	body := json.RawMessage(bytes.TrimSpace(t.body))
	if !json.Valid(body) {
		return Answer{}
	}
	answer.Said = len(body) // the only known value if the listener panics
	return t.listener.Body(body)
}

// Interface guard.
var _ Tap = (*tap)(nil)
