package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Envelope is a request body split into its top-level members and the elements of its list. It keeps the body
// unchanged and shares its memory with everything it returns. It is safe for concurrent use.
type Envelope struct {
	body     []byte
	members  []memberSpan
	list     span // value of the list's member
	isOne    bool // the list is a string or an object and counts as one element
	elements []span
	known    Known    // optional
	read     int      // known elements
	values   int      // values in unknown elements
	large    *Invalid // the fault of a list that exceeds a limit; nil if within all
}

// The limits of a list. Each value takes memory, a content block a few hundred bytes.
const (
	MaxElements   = 100_000   // messages; providers accept as many
	MaxNew        = 30_000    // new messages, because each takes kilobytes until it is recorded
	MaxValues     = 50_000    // JSON values in one message: its blocks, their members and the values in those
	maxListValues = 1_000_000 // JSON values in all new messages
)

// maxMembers limits a body's top-level members, because each is searched for by name several times.
const maxMembers = 1000

// unknown is the initial capacity for elements behind the known ones.
const unknown = 32

// memberSpan is the position of a top-level member.
type memberSpan struct{ key, value span }

// Range is the position of an element, in bytes from the list's opening bracket; End is excluded.
type Range struct{ Start, End int32 }

// Known returns the positions of already known elements at the start of a list. list is the body from the
// list's opening bracket.
type Known func(list []byte) []Range

// Open splits a body into its members and the elements of the top-level member list, in one pass. Of repeated
// members the last one counts, see Fields. A list that is a string or an object counts as one element. The error is an *Invalid. The
// contents of strings, arrays and objects are only checked for their ends.
func Open(body []byte, list string) (*Envelope, error) { return OpenKnown(body, list, nil) }

// OpenKnown is Open for a body whose list may begin with known elements. It accepts at most MaxNew further
// ones.
func OpenKnown(body []byte, list string, known Known) (*Envelope, error) {
	e := &Envelope{body: body, members: make([]memberSpan, 0, 24), known: known}
	i := space(body, 0)
	if at(body, i) != '{' {
		return nil, &Invalid{Message: fmt.Sprintf("the body must be a JSON object; byte %d is not its start", i)}
	}
	found := false
	i = space(body, i+1)
	for at(body, i) != '}' || len(e.members) > 0 {
		member, fault, ok := e.readMember(i, list)
		if e.large != nil {
			e.large.Member = list + e.large.Member
			return nil, e.large
		}
		if !ok {
			return nil, malformed(body, fault)
		}
		if len(e.members) >= maxMembers {
			return nil, &Invalid{IsLarge: true, Message: fmt.Sprintf("the body has more than %d members, which no provider takes; send those of the API only", maxMembers)}
		}
		e.members = append(e.members, member)
		found = found || member.value == e.list
		i = space(body, member.value.end)
		if at(body, i) != ',' {
			break
		}
		i = space(body, i+1)
	}
	if at(body, i) != '}' {
		return nil, malformed(body, i)
	}
	if i = space(body, i+1); i < len(body) {
		return nil, malformed(body, i)
	}
	if !found {
		return nil, &Invalid{Member: list, Message: "missing; expected an array"}
	}
	if body[e.list.start] != '[' && !e.isOne {
		return nil, &Invalid{Member: list, Message: "expected an array"}
	}
	return e, nil
}

// readMember reads the member at i and, if it is the list, its elements.
func (e *Envelope) readMember(i int, list string) (member memberSpan, fault int, ok bool) {
	if at(e.body, i) != '"' {
		return member, i, false
	}
	keyEnd, ok := quoted(e.body, i)
	if !ok {
		return member, keyEnd, false
	}
	member.key = span{i, keyEnd}
	i = space(e.body, keyEnd)
	if at(e.body, i) != ':' {
		return member, i, false
	}
	i = space(e.body, i+1)
	var end int
	if named(e.body[member.key.start:keyEnd], list) {
		end, ok = e.readList(i)
	} else {
		end, ok = skip(e.body, i)
	}
	member.value = span{i, end}
	return member, end, ok
}

// readList reads and splits the list, which starts at i.
func (e *Envelope) readList(i int) (end int, ok bool) {
	e.elements, e.isOne = e.elements[:0], false
	if at(e.body, i) == '[' {
		end, ok = e.readElements(i)
	} else if end, ok = skip(e.body, i); ok && (e.body[i] == '"' || e.body[i] == '{') {
		e.elements, e.isOne = append(e.elements, span{i, end}), true
	}
	e.list = span{i, end}
	return end, ok
}

// readElements splits the array that starts at i.
func (e *Envelope) readElements(i int) (end int, ok bool) {
	if e.known != nil {
		known := e.known(e.body[i:])
		e.elements = slices.Grow(e.elements, len(known)+len(known)/8+unknown)
		for _, stretch := range known {
			e.elements = append(e.elements, span{i + int(stretch.Start), i + int(stretch.End)})
		}
		e.read = len(known)
	}
	if n := len(e.elements); n > 0 {
		end = e.elements[n-1].end
	} else {
		i = space(e.body, i+1)
		if at(e.body, i) == ']' {
			return i + 1, true
		}
		if end, ok = e.readElement(i); !ok {
			return end, false
		}
	}
	for {
		i = space(e.body, end)
		switch at(e.body, i) {
		case ',':
			if end, ok = e.readElement(space(e.body, i+1)); !ok {
				return end, false
			}
		case ']':
			return i + 1, true
		default:
			return i, false
		}
	}
}

func (e *Envelope) readElement(i int) (end int, ok bool) {
	end, ok = skip(e.body, i)
	if !ok {
		return end, false
	}
	if e.large = e.tooMuch(span{i, end}); e.large != nil {
		return i, false
	}
	e.elements = append(e.elements, span{i, end})
	return end, true
}

// tooMuch returns the fault of a list that exceeds a limit with one more element; nil if it fits.
func (e *Envelope) tooMuch(next span) *Invalid {
	tooMany := func(member string, limit int, what string) *Invalid {
		return &Invalid{Member: member, IsLarge: true, Message: fmt.Sprintf("holds more than %d %s; send fewer", limit, what)}
	}
	found := values(e.slice(next), MaxValues+1)
	e.values += found
	switch {
	case len(e.elements) >= MaxElements:
		return tooMany("", MaxElements, "messages, which no provider takes")
	case e.known != nil && len(e.elements)-e.read >= MaxNew:
		return tooMany("", MaxNew, "messages that were not sent before")
	case found > MaxValues:
		return tooMany(fmt.Sprintf(".%d", len(e.elements)), MaxValues, "JSON values, content blocks and what stands in them")
	case e.values > maxListValues:
		return tooMany("", maxListValues, "JSON values that were not sent before, content blocks and what stands in them")
	}
	return nil
}

// Len returns how many elements the list has.
func (e *Envelope) Len() int { return len(e.elements) }

// Element returns element i of the list, unchanged.
func (e *Envelope) Element(i int) json.RawMessage { return e.slice(e.elements[i]) }

// Member returns the value of a top-level member and whether it exists.
func (e *Envelope) Member(name string) (json.RawMessage, bool) {
	if i := e.find(name); i >= 0 {
		return e.slice(e.members[i].value), true
	}
	return nil, false
}

// Range returns the position of element i.
func (e *Envelope) Range(i int) Range {
	where := e.elements[i]
	return Range{Start: int32(where.start - e.list.start), End: int32(where.end - e.list.start)} //nolint:gosec // a body is smaller than 2 GB
}

// ListBytes returns the list, unchanged.
func (e *Envelope) ListBytes() json.RawMessage { return e.slice(e.list) }

// Body returns the whole body, unchanged.
func (e *Envelope) Body() []byte { return e.body }

// find returns the index of the last member with a name; -1 if absent.
func (e *Envelope) find(name string) int {
	for i, member := range slices.Backward(e.members) {
		if named(e.slice(member.key), name) {
			return i
		}
	}
	return -1
}

// repeats reports whether two members have a name, ignoring case.
func (e *Envelope) repeats(name string) bool {
	found := 0
	for _, member := range e.members {
		key := e.body[member.key.start+1 : member.key.end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			text, _ := String(e.slice(member.key))
			key = []byte(text)
		}
		if bytes.EqualFold(key, []byte(name)) {
			found++
		}
	}
	return found > 1
}

func (e *Envelope) slice(s span) json.RawMessage { return e.body[s.start:s.end:s.end] }

// malformed returns an error for the position of invalid JSON in a body.
func malformed(body []byte, fault int) error {
	if fault >= len(body) {
		return &Invalid{Message: fmt.Sprintf("the body is not valid JSON: it ends too early, after %d bytes", len(body))}
	}
	return &Invalid{Message: fmt.Sprintf("the body is not valid JSON at byte %d", fault)}
}

// Invalid is a fault of a request body, in words that help its sender.
type Invalid struct {
	Member  string // path of the faulty member, "messages.3.content"; "" for the body itself
	Message string // the value found or the one expected
	IsLarge bool   // the body is too large in some way, rather than wrong
}

// Error returns the member and the message.
func (i *Invalid) Error() string {
	if i.Member == "" {
		return i.Message
	}
	return i.Member + ": " + i.Message
}

// Interface guard.
var _ error = (*Invalid)(nil)
