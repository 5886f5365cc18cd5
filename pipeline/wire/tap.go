package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// MaxAnswer is how many bytes of an answer a tap keeps to rebuild its messages.
// Of a longer stream it reads the usage alone, of a longer body nothing.
const MaxAnswer = 16 << 20

// Listener understands the answers of one format.
type Listener interface {
	// Event takes the next event of a stream. It keeps nothing of its data.
	Event(Event)

	// Answer returns what the events so far said.
	Answer() Answer

	// Body reads a whole answer that is not a stream.
	Body(json.RawMessage) Answer
}

// NewTap returns a tap that lets listener read an answer. A body that is JSON is
// read as such even where a stream was expected: providers answer so with errors.
func NewTap(stream bool, listener Listener) Tap {
	return &tap{listener: listener, stream: stream}
}

type tap struct {
	listener Listener
	stream   bool
	begun    bool // the first byte that is not white space has come
	split    Splitter
	body     []byte
	isLong   bool // the body is longer than MaxAnswer and was let go
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

// event has the listener take an event. One at which it panics is left out: what comes
// after it is read, in which the usage may stand.
func (t *tap) event(event Event) {
	defer t.survive()
	t.listener.Event(event)
}

// survive ends a panic, and keeps what the first one says: there may be one an event.
func (t *tap) survive() {
	if value := recover(); value != nil && t.failure == "" {
		t.failure = fmt.Sprintf("%v\n%s", value, debug.Stack())
	}
}

// Answer returns what has been read so far.
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
	answer.Said = len(body) // is all that is known if the listener panics
	return t.listener.Body(body)
}

// Interface guard.
var _ Tap = (*tap)(nil)
