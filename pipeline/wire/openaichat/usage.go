package openaichat

import (
	"bytes"
	"encoding/json"
	"slices"

	"palimpsest/pipeline/wire"
)

const (
	streamOptions = "stream_options"
	includeUsage  = "include_usage"
)

// AskUsage returns the stream_options that ask for the usage of a stream, which
// come in one chunk more. The body's other options stay.
func (Codec) AskUsage(body *wire.Envelope) (member wire.Member, needed bool) {
	options, _ := body.Member(streamOptions)
	switch {
	case wire.IsNull(options):
		options = json.RawMessage(`{}`)
	case options[0] != '{', string(wire.Get(options, includeUsage)) == "true":
		return wire.Member{}, false // what is not an object is for the provider to refuse
	}
	return wire.Member{Name: streamOptions, Raw: wire.Set(options, includeUsage, json.RawMessage("true"))}, true
}

// WithoutUsage returns a filter that takes the chunk with the usage, the one that
// has no choices, out of a stream. It holds back what it cannot tell yet: never
// more than the event at hand, and that only until its choices show.
func (Codec) WithoutUsage() wire.Filter { return &filter{} }

// maxHeld is how much of an event is held back, in bytes: a usage is shorter.
const maxHeld = 64 << 10

// filter is a wire.Filter. Lines may end with LF, CRLF or CR.
type filter struct {
	event   []byte // what has come of the event at hand, while it is held back
	passes  bool   // the event at hand goes on
	inLine  bool   // the line at hand has begun
	began   bool   // the event at hand has a line
	afterCR bool   // the last byte was a CR: an LF belongs to it
	dropped bool   // and that to an event that was taken out
	out     []byte
}

// Pass implements wire.Filter.
func (f *filter) Pass(chunk []byte) []byte {
	f.out = f.out[:0]
	for len(chunk) > 0 {
		if f.afterCR {
			f.afterCR = false
			if chunk[0] == '\n' {
				f.takeLF()
				chunk = chunk[1:]
				continue
			}
		}
		line, ends := chunk, false
		if end := bytes.IndexAny(chunk, "\r\n"); end >= 0 {
			line, ends = chunk[:end+1], true
		}
		f.take(line, ends)
		chunk = chunk[len(line):]
	}
	if !f.passes && f.mayPass() {
		f.release()
	}
	return f.out
}

// End implements wire.Filter.
func (f *filter) End() []byte {
	held := f.event
	f.event = nil
	if isUsage(append(slices.Clip(held), "\n\n"...)) { // the stream ends without a blank line
		return nil
	}
	return held
}

// take adds a line, or what has come of it, to the event at hand.
func (f *filter) take(line []byte, ends bool) {
	blank := !f.inLine && ends && len(line) == 1
	if f.passes {
		f.out = append(f.out, line...)
	} else {
		f.event = append(f.event, line...)
	}
	f.inLine = !ends
	if !ends {
		return
	}
	f.afterCR, f.dropped = line[len(line)-1] == '\r', false
	if !blank {
		f.began = true
		return
	}
	if !f.passes && f.began && isUsage(f.event) {
		f.event, f.dropped = f.event[:0], true
	}
	f.release()
	f.passes, f.began = false, false
}

// takeLF adds the LF of a line end whose CR has been taken.
func (f *filter) takeLF() {
	switch {
	case f.dropped:
	case f.passes || !f.began:
		f.out = append(f.out, '\n')
	default:
		f.event = append(f.event, '\n')
	}
}

// release lets the event at hand go on.
func (f *filter) release() {
	f.out = append(f.out, f.event...)
	f.event, f.passes = f.event[:0], true
}

// mayPass reports whether the event at hand is seen to be no usage: its choices
// begin with one, or it is too long. Within a string of JSON each quote has a
// backslash before it, so the name is found as a name only.
func (f *filter) mayPass() bool {
	if len(f.event) > maxHeld {
		return true
	}
	_, rest, found := bytes.Cut(f.event, []byte(`"choices":`))
	if !found {
		return false
	}
	rest = bytes.TrimLeft(rest, " \t")
	if len(rest) == 0 || rest[0] == 'n' { // null
		return false
	}
	rest = bytes.TrimLeft(rest[1:], " \t")
	return len(rest) > 0 && rest[0] != ']'
}

// isUsage reports whether an event holds a usage and no choice.
func isUsage(event []byte) bool {
	found := false
	var split wire.Splitter
	split.Write(event, func(event wire.Event) {
		choices := wire.Get(event.Data, "choices")
		usage := wire.Get(event.Data, "usage")
		hasNone := wire.IsNull(choices) || choices[0] == '[' && !wire.HasElements(choices)
		found = hasNone && len(usage) > 0 && usage[0] == '{' && json.Valid(event.Data)
	})
	return found
}

// Interface guards.
var (
	_ wire.UsageAsker = Codec{}
	_ wire.Filter     = (*filter)(nil)
)
