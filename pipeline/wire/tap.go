package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
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

// MaxEvent is the longest event that a Splitter yields, in bytes of data.
const MaxEvent = 16 << 20

// maxNames limits how many event names a Splitter caches.
const maxNames = 64

// Event is one event of a stream.
type Event struct {
	Name string // "" if unnamed
	Data []byte // valid until the yield function returns
}

// Splitter finds the events in a text/event-stream that arrives in arbitrary chunks. Lines may end with LF,
// CRLF or CR. It buffers the incomplete event, up to MaxEvent bytes. Longer events are skipped, and the
// stream continues. The zero value is ready to use.
type Splitter struct {
	line  []byte // start of an incomplete line
	data  []byte // of the incomplete event
	owned bool   // data is our own memory, not the caller's chunk
	has   bool   // the event has data, possibly empty
	long  bool   // the event or its current line is too long and is skipped
	name  string
	names map[string]string

	started bool // the first line has been read, so no byte order mark can follow
	afterCR bool // the last byte was a CR, so that a following LF belongs to it
	inLong  bool // inside a line that is too long
}

// Write takes the next chunk of the stream and yields every event that ends in it.
func (s *Splitter) Write(chunk []byte, yield func(Event)) {
	for len(chunk) > 0 {
		if s.afterCR {
			s.afterCR = false
			if chunk[0] == '\n' {
				chunk = chunk[1:]
				continue
			}
		}
		end, size := lineEnd(chunk)
		if end < 0 {
			s.keepLine(chunk)
			break
		}
		s.afterCR = chunk[end] == '\r' && size == 1
		s.endLine(chunk[:end], yield)
		chunk = chunk[end+size:]
	}
	s.own()
}

// lineEnd returns where the first line of chunk ends and how long its line ending is.
func lineEnd(chunk []byte) (end, size int) {
	line := chunk
	lf := bytes.IndexByte(chunk, '\n')
	if lf >= 0 {
		line = chunk[:lf]
	}
	cr := bytes.IndexByte(line, '\r')
	switch {
	case cr >= 0 && cr == lf-1:
		return cr, 2
	case cr >= 0:
		return cr, 1
	}
	return lf, 1
}

// keepLine buffers the start of a line until its end arrives.
func (s *Splitter) keepLine(part []byte) {
	if s.inLong || len(s.line)+len(part) > MaxEvent {
		s.line, s.inLong, s.long = nil, true, true
		return
	}
	s.line = append(s.line, part...)
}

// endLine reads a line after its last part has arrived.
func (s *Splitter) endLine(part []byte, yield func(Event)) {
	if s.inLong {
		s.inLong = false
		return
	}
	line, kept := part, false
	if len(s.line) > 0 {
		s.line = append(s.line, part...)
		line, kept, s.line = s.line, true, nil
	}
	if !s.started {
		s.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		s.dispatch(yield)
		return
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		s.name = s.intern(value)
	case "data":
		s.addData(value, kept)
	}
}

// addData adds a line of data to the event; own means that value is our own memory.
func (s *Splitter) addData(value []byte, own bool) {
	if s.long || len(s.data)+len(value) >= MaxEvent {
		s.data, s.owned, s.long = nil, false, true
		return
	}
	if !s.has {
		s.has, s.data, s.owned = true, value, own
		return
	}
	s.own()
	s.data = append(append(s.data, '\n'), value...)
}

// own copies data from the caller's memory.
func (s *Splitter) own() {
	if s.has && !s.owned {
		s.data, s.owned = append(make([]byte, 0, len(s.data)+64), s.data...), true
	}
}

// dispatch ends the event. As the standard requires, an event without data is dropped.
func (s *Splitter) dispatch(yield func(Event)) {
	event := Event{Name: s.name, Data: s.data}
	whole := s.has && !s.long
	s.name, s.data, s.owned, s.has, s.long = "", nil, false, false, false
	if whole {
		yield(event)
	}
}

// Flush yields a pending event that lacks only the blank line after it, because some servers end their
// streams without one. Write continues as usual afterwards.
func (s *Splitter) Flush(yield func(Event)) {
	if s.long || s.inLong {
		return
	}
	data := s.data
	if value, is := bytes.CutPrefix(s.line, []byte("data:")); is {
		value = bytes.TrimPrefix(value, []byte(" "))
		if s.has {
			value = slices.Concat(data, []byte("\n"), value)
		}
		data = value
	}
	if len(data) == 0 || !json.Valid(data) && string(bytes.TrimSpace(data)) != "[DONE]" {
		return
	}
	s.line, s.data, s.owned, s.has = nil, bytes.Clone(data), true, true
	s.dispatch(yield)
}

// intern returns the name as a string without a new copy for each event.
func (s *Splitter) intern(name []byte) string {
	if known, ok := s.names[string(name)]; ok {
		return known
	}
	text := string(name)
	if s.names == nil {
		s.names = make(map[string]string, 8)
	}
	if len(s.names) < maxNames && len(text) <= maxNames {
		s.names[text] = text
	}
	return text
}
