package wire

import (
	"bytes"
	"encoding/json"
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
	if e.isText {
		return e.appendTextList(out, pieces)
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

// appendTextList appends the array of pieces for an original string list. Next to other items the string
// becomes the equivalent user message.
func (e *Envelope) appendTextList(out []byte, pieces []Piece) []byte {
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
		out = append(out, `{"role":"user","content":`...)
		out = append(out, e.Element(0)...)
		out = append(out, '}')
	}
	return append(out, ']')
}
