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

// AskUsage returns the stream_options that request the usage of a stream, which arrives in an additional
// chunk. The body's other options stay.
func (Codec) AskUsage(body *wire.Envelope) (member wire.Member, needed bool) {
	options, _ := body.Member(streamOptions)
	switch {
	case wire.IsNull(options):
		options = json.RawMessage(`{}`)
	case options[0] != '{', string(wire.Get(options, includeUsage)) == "true":
		return wire.Member{}, false // the provider rejects a value other than an object
	}
	return wire.Member{Name: streamOptions, Raw: wire.Set(options, includeUsage, json.RawMessage("true"))}, true
}

// WithoutUsage returns a filter that removes the chunk with the usage, which has no choices, from a stream.
// It holds back at most the current event, and only until its choices are known.
func (Codec) WithoutUsage() wire.Filter { return &filter{} }

// maxHeld is how much of an event is held back, in bytes. A usage is shorter.
const maxHeld = 64 << 10

// filter is a wire.Filter. Lines may end with LF, CRLF or CR.
type filter struct {
	event   []byte // the held-back part of the current event
	passes  bool   // the current event is passed on
	inLine  bool   // the current line has begun
	began   bool   // the current event has a line
	afterCR bool   // the last byte was a CR, so that a following LF belongs to it
	dropped bool   // the CR belonged to a removed event
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

// take adds a line, or a part of it, to the current event.
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

// takeLF adds the LF of a line ending whose CR has been taken.
func (f *filter) takeLF() {
	switch {
	case f.dropped:
	case f.passes || !f.began:
		f.out = append(f.out, '\n')
	default:
		f.event = append(f.event, '\n')
	}
}

// release passes the current event on.
func (f *filter) release() {
	f.out = append(f.out, f.event...)
	f.event, f.passes = f.event[:0], true
}

// mayPass reports whether the current event is known not to be a usage: its choices are non-empty, or it is
// too long. A quote inside a JSON string has a backslash before it, so only a member name matches.
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
