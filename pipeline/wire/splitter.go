package wire

import (
	"bytes"
	"encoding/json"
	"slices"
)

// MaxEvent is the longest event that a Splitter yields, in bytes of data.
const MaxEvent = 16 << 20

// maxNames bounds how many event names a Splitter remembers.
const maxNames = 64

// Event is one event of a stream.
type Event struct {
	Name string // empty where the stream names none
	Data []byte // valid until the function that was given the event returns
}

// Splitter finds the events in a text/event-stream that arrives in pieces cut
// anywhere. Lines may end with LF, CRLF or CR. It holds the event that is not
// complete yet and no more than MaxEvent bytes: a longer event is skipped, the
// stream goes on. The zero value is ready to use.
type Splitter struct {
	line  []byte // start of a line whose end has not come
	data  []byte // of the event that has not ended
	owned bool   // data is our own memory, not the caller's chunk
	has   bool   // the event has data, be it empty
	long  bool   // the event or its current line is too long and is skipped
	name  string
	names map[string]string

	started bool // the first line has been read: no byte order mark can follow
	afterCR bool // the last byte was a CR: an LF belongs to it
	inLong  bool // within a line that is too long
}

// Write takes the next piece of the stream and gives yield every event that ends
// in it.
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

// lineEnd returns where the first line of chunk ends and how long its ending is.
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

// keepLine keeps the start of a line until its end comes.
func (s *Splitter) keepLine(part []byte) {
	if s.inLong || len(s.line)+len(part) > MaxEvent {
		s.line, s.inLong, s.long = nil, true, true
		return
	}
	s.line = append(s.line, part...)
}

// endLine reads a line whose last part has come.
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

// addData adds a line of data to the event; own says that value is our own memory.
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

// own copies data that lies in the caller's memory.
func (s *Splitter) own() {
	if s.has && !s.owned {
		s.data, s.owned = append(make([]byte, 0, len(s.data)+64), s.data...), true
	}
}

// dispatch ends the event. As the standard says, an event without data is dropped.
func (s *Splitter) dispatch(yield func(Event)) {
	event := Event{Name: s.name, Data: s.data}
	whole := s.has && !s.long
	s.name, s.data, s.owned, s.has, s.long = "", nil, false, false, false
	if whole {
		yield(event)
	}
}

// Flush gives yield the event that has come whole but for the blank line behind it: some servers
// end their streams without one. What comes of the stream after it goes on as if it had come.
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
