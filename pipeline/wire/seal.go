package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Piece is a part of a sealed list: the client's elements From to To (excluded), byte for byte, or Raw in
// their place. Raw may hold several elements, separated by commas; an empty non-nil Raw removes them.
type Piece struct {
	From, To int
	Raw      json.RawMessage
}

// Member is a top-level member to set when a body is sealed. A member without Raw is left unchanged.
type Member struct {
	Name string
	Raw  json.RawMessage
}

// edit is a change of a body: raw or the new list replaces a range.
type edit struct {
	at     span
	raw    []byte
	isList bool
}

// Seal returns the body with its list replaced by pieces and with members set, in place or appended.
// Everything else keeps its bytes, including white space. An unchanged body is returned without a copy.
// Pieces must be within the list, and members must not include the list.
func (e *Envelope) Seal(pieces []Piece, members ...Member) []byte {
	return e.SealIn(nil, pieces, members...)
}

// SealIn is Seal with an allocator that returns as many bytes as requested; optional. It isn't called for an
// unchanged body.
func (e *Envelope) SealIn(memory func(size int) []byte, pieces []Piece, members ...Member) []byte {
	edits := e.memberEdits(members)
	size := len(e.body)
	for _, edit := range edits {
		size += len(edit.raw)
	}
	if !e.keeps(pieces) {
		edits = append(edits, edit{at: e.list, isList: true})
		for _, piece := range pieces {
			size += len(piece.Raw) + 1
		}
	}
	if len(edits) == 0 {
		return e.body
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at.start - b.at.start })
	var out []byte
	if memory == nil {
		out = make([]byte, 0, size)
	} else {
		out = memory(size)[:0]
	}
	done := 0
	for _, edit := range edits {
		out = append(out, e.body[done:edit.at.start]...)
		if edit.isList {
			out = e.appendList(out, pieces)
		} else {
			out = append(out, edit.raw...)
		}
		done = edit.at.end
	}
	return append(out, e.body[done:]...)
}

// memberEdits returns the changes that set members.
func (e *Envelope) memberEdits(members []Member) []edit {
	var edits []edit
	for _, member := range members {
		if len(member.Raw) == 0 {
			continue
		}
		if i := e.find(member.Name); i >= 0 {
			if where := e.members[i].value; !bytes.Equal(e.slice(where), member.Raw) {
				edits = append(edits, edit{at: where, raw: member.Raw})
			}
			continue
		}
		last := e.members[len(e.members)-1].value.end
		raw := AppendQuote([]byte{','}, member.Name)
		raw = append(append(raw, ':'), member.Raw...)
		edits = append(edits, edit{at: span{last, last}, raw: raw})
	}
	return edits
}

// keeps reports whether pieces equal the client's own list.
func (e *Envelope) keeps(pieces []Piece) bool {
	next := 0
	for _, piece := range pieces {
		switch {
		case piece.Raw == nil && piece.From == piece.To:
		case piece.Raw == nil && piece.From == next:
			next = piece.To
		case piece.Raw != nil && piece.From == piece.To && len(piece.Raw) == 0:
		default:
			return false
		}
	}
	return next == len(e.elements)
}

// appendList appends the list of pieces.
func (e *Envelope) appendList(out []byte, pieces []Piece) []byte {
	if e.isOne {
		return e.appendOne(out, pieces)
	}
	first, last := e.list.end-1, e.list.end-1
	if n := len(e.elements); n > 0 {
		first, last = e.elements[0].start, e.elements[n-1].end
	}
	out = append(out, e.body[e.list.start:first]...)
	isFirst, end := true, 0
	for _, piece := range pieces {
		raw := piece.Raw
		if raw == nil && piece.From < piece.To {
			raw = e.body[e.elements[piece.From].start:e.elements[piece.To-1].end]
		}
		if len(raw) == 0 {
			continue
		}
		if !isFirst {
			out = append(out, e.comma(end, piece.From)...)
		}
		out, isFirst, end = append(out, raw...), false, piece.To
	}
	return append(out, e.body[last:e.list.end]...)
}

// comma returns the separator between a piece that ends at one element and a piece that begins at another:
// the client's own comma if possible.
func (e *Envelope) comma(end, from int) []byte {
	if end != from || from == 0 || from >= len(e.elements) {
		return []byte{','}
	}
	return e.body[e.elements[from-1].end:e.elements[from].start]
}

// appendOne appends the array of pieces for an original list of one value. Next to other items a string becomes
// the equivalent user message of Responses.
func (e *Envelope) appendOne(out []byte, pieces []Piece) []byte {
	out = append(out, '[')
	isFirst := true
	for _, piece := range pieces {
		if len(piece.Raw) == 0 && (piece.Raw != nil || piece.From >= piece.To) {
			continue
		}
		if !isFirst {
			out = append(out, ',')
		}
		isFirst = false
		if piece.Raw != nil {
			out = append(out, piece.Raw...)
			continue
		}
		if element := e.Element(0); element[0] == '"' {
			out = append(append(append(out, `{"role":"user","content":`...), element...), '}')
		} else {
			out = append(out, element...)
		}
	}
	return append(out, ']')
}

// Question is a request that Palimpsest itself sends to a model.
type Question struct {
	Model     string // the provider's name for it
	System    string
	User      string
	MaxOutput int // tokens

	// Effort is the model's lowest reasoning effort ("low"), for formats with such a setting; "" omits it.
	Effort string

	// NoThinking turns thinking off, for formats that can do so.
	NoThinking bool

	// Compatible means that the provider did not make the model. Therefore its server may support only older
	// members of the API.
	Compatible bool
}

// Repetition is a request that sends archived messages again. Other parts of the client's request are not
// archived.
type Repetition struct {
	Model     string
	Stream    bool
	MaxOutput int      // tokens, for formats that require a limit
	Tools     []string // names of the tools that the messages call
	Messages  []json.RawMessage
}

// TextMessage is a message that holds one text.
type TextMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// EncodeBody returns a body as JSON, without escapes that only HTML needs.
func EncodeBody[T any](body T) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// MemberUse is the role of a body's member in the reuse of an answer.
type MemberUse int

// The roles of a member.
const (
	Unknown      MemberUse = iota // not listed, so the request's answer is not reused
	Counts                        // changes the answer
	Formatting                    // does not affect the answer
	Conversation                  // holds the conversation
	Tools                         // holds the tools
	System                        // holds the system prompt
)

// Reuse holds the conditions under which an answer of a format may be reused for an equal request.
type Reuse struct {
	// Member returns the role of a body's member. Unknown members may refer to data that only the provider
	// has: a thread, a container, a connector.
	Member func(name string) MemberUse

	// Ends are the stop reasons of a complete answer.
	Ends []string

	// Requirements are the required values of some members, in the order of the checks.
	Requirements []Requirement

	// SystemInList means that system messages are part of the conversation.
	SystemInList bool

	// ItemType is the optional type of a message; "" if messages have no type.
	ItemType string

	// TextType is the type of a block equivalent to a string.
	TextType string

	// ClientTools are the types of the tools that clients run. "" is a tool without a type.
	ClientTools []string
}

// Requirement is a member's required value for the reuse of an answer.
type Requirement struct {
	Member  string
	Value   string // JSON without white space
	Present bool   // it must be present; otherwise it may also be absent or null
	Stored  bool   // otherwise the provider stores the answer
}
