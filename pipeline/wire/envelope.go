package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Envelope is a request body cut at its top-level members and at the elements of
// its list. It keeps the body as it came and shares its memory with everything it
// returns. It is safe for concurrent use.
type Envelope struct {
	body     []byte
	members  []memberSpan
	list     span // value of the list's member
	isText   bool // the list is a string: one element
	elements []span
	known    Known    // optional
	read     int      // elements that were known
	values   int      // in elements that were not known
	large    *Invalid // says what the list has too much of, if anything
}

// What a list may hold. Each value that is read takes memory, a content block a few hundred
// bytes of it.
const (
	MaxElements   = 100_000   // messages, as many as providers take
	MaxNew        = 30_000    // messages that have not been read before: each takes kilobytes until it is recorded
	MaxValues     = 50_000    // JSON values in one message: its blocks, their members and what stands in those
	maxListValues = 1_000_000 // JSON values in all messages that have not been read before
)

// maxMembers is how many members a body may have at its top: each is looked for by name
// more than once.
const maxMembers = 1000

// unknown is how many elements behind the known ones there is room for from the start.
const unknown = 32

// memberSpan is where a top-level member lies.
type memberSpan struct{ key, value span }

// Range is where an element lies, in bytes from the list's opening bracket on;
// End is excluded.
type Range struct{ Start, End int32 }

// Known returns the elements at the start of a list that need not be looked for.
// It is given the body from the list's opening bracket on.
type Known func(list []byte) []Range

// Open cuts a body at its members and at the elements of its top-level member
// list, in one pass. Of a member that appears twice the last one counts, see Fields. A list
// that is a string counts as one element. The error is an *Invalid; what lies
// inside strings, arrays and objects is not checked beyond their ends.
func Open(body []byte, list string) (*Envelope, error) { return OpenKnown(body, list, nil) }

// OpenKnown is Open for a body whose list may begin with elements that are known. Behind
// those it takes MaxNew elements at most.
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
	if first := body[e.list.start]; first != '[' && first != '"' {
		return nil, &Invalid{Member: list, Message: "expected an array"}
	}
	return e, nil
}

// readMember reads the member that starts at i and, if it is the list, its elements.
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

// readList reads the list's value, which starts at i, and cuts it.
func (e *Envelope) readList(i int) (end int, ok bool) {
	e.elements, e.isText = e.elements[:0], false
	if at(e.body, i) == '[' {
		end, ok = e.readElements(i)
	} else if end, ok = skip(e.body, i); ok && e.body[i] == '"' {
		e.elements, e.isText = append(e.elements, span{i, end}), true
	}
	e.list = span{i, end}
	return end, ok
}

// readElements cuts the array that starts at i.
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

// tooMuch says what there is too much of with one more element; nil if it fits.
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

// Element returns element i of the list as it came.
func (e *Envelope) Element(i int) json.RawMessage { return e.slice(e.elements[i]) }

// Member returns the value of a top-level member and whether there is one.
func (e *Envelope) Member(name string) (json.RawMessage, bool) {
	if i := e.find(name); i >= 0 {
		return e.slice(e.members[i].value), true
	}
	return nil, false
}

// Range returns where element i lies.
func (e *Envelope) Range(i int) Range {
	where := e.elements[i]
	return Range{Start: int32(where.start - e.list.start), End: int32(where.end - e.list.start)} //nolint:gosec // a body is smaller than 2 GB
}

// ListBytes returns the list as it came.
func (e *Envelope) ListBytes() json.RawMessage { return e.slice(e.list) }

// Body returns the whole body as it came.
func (e *Envelope) Body() []byte { return e.body }

// find returns the index of the last member called name; -1 if absent.
func (e *Envelope) find(name string) int {
	for i, member := range slices.Backward(e.members) {
		if named(e.slice(member.key), name) {
			return i
		}
	}
	return -1
}

// repeats reports whether two members are called name, in letters of either case.
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

// malformed says where a body stops being JSON.
func malformed(body []byte, fault int) error {
	if fault >= len(body) {
		return &Invalid{Message: fmt.Sprintf("the body is not valid JSON: it ends too early, after %d bytes", len(body))}
	}
	return &Invalid{Message: fmt.Sprintf("the body is not valid JSON at byte %d", fault)}
}
