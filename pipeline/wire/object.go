package wire

import (
	"encoding/json"
	"iter"
	"slices"
)

// Members yields the members of a JSON object in order, with unquoted keys and raw values. It ends at the
// first fault and yields nothing for other values.
func Members(object json.RawMessage) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func([]byte, json.RawMessage) bool) {
		for key, value := range spans(object, '{', '}') {
			if !yield(keyText(object, key), object[value.start:value.end:value.end]) {
				return
			}
		}
	}
}

// keyText returns the text of a key.
func keyText(object json.RawMessage, key span) []byte {
	name := object[key.start+1 : key.end-1]
	if slices.Contains(name, '\\') {
		name, _ = AppendText(nil, object[key.start:key.end])
	}
	return name
}

// Elements yields the elements of a JSON array in order. It ends at the first
// fault and yields nothing for other values.
func Elements(array json.RawMessage) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		i := 0
		for _, value := range spans(array, '[', ']') {
			if !yield(i, array[value.start:value.end:value.end]) {
				return
			}
			i++
		}
	}
}

// HasElements reports whether an array is non-empty.
func HasElements(array json.RawMessage) bool {
	for range Elements(array) {
		return true
	}
	return false
}

// Get returns the last member of an object with a name; nil if absent.
func Get(object json.RawMessage, name string) json.RawMessage {
	var found json.RawMessage
	for key, value := range Members(object) {
		if string(key) == name {
			found = value
		}
	}
	return found
}

// Text returns the text of an object's member; "" if it is not a string.
func Text(object json.RawMessage, name string) string {
	text, _ := String(Get(object, name))
	return text
}

// Set returns an object with value as its named member: it replaces the last member of that name or is
// appended. Everything else keeps its bytes.
func Set(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	where, last, ok := span{}, 0, false
	for key, found := range spans(object, '{', '}') {
		last = found.end
		if named(object[key.start:key.end], name) {
			where, ok = found, true
		}
	}
	if ok {
		return slices.Concat(object[:where.start], value, object[where.end:])
	}
	out := make([]byte, 0, len(object)+len(name)+len(value)+4)
	if last == 0 {
		out = append(AppendQuote(append(out, '{'), name), ':')
		return append(append(out, value...), '}')
	}
	out = append(append(out, object[:last]...), ',')
	out = append(append(AppendQuote(out, name), ':'), value...)
	return append(out, object[last:]...)
}

// Delete returns an object without the named members; the same slice without any.
func Delete(object json.RawMessage, name string) json.RawMessage {
	return keep(object, func(key, _ span) bool { return !named(object[key.start:key.end], name) }, nil)
}

// Keep returns an object with those of its members for which keeps returns true, behind the members that front
// returns; the same slice if it changes nothing. keeps receives the unquoted key and the raw value of each
// member, in order. Keep calls front after that; its result is empty or ends with a comma.
func Keep(object json.RawMessage, keeps func(name []byte, value json.RawMessage) bool, front func() []byte) json.RawMessage {
	return keep(object, func(key, value span) bool {
		return keeps(keyText(object, key), object[value.start:value.end:value.end])
	}, front)
}

// keep is Keep for positions. front is optional.
func keep(object json.RawMessage, keeps func(key, value span) bool, front func() []byte) json.RawMessage {
	var found []span // from the first byte of a member to its last
	drop := make([]bool, 0, 8)
	for key, value := range spans(object, '{', '}') {
		drop = append(drop, !keeps(key, value))
		found = append(found, span{key.start, value.end})
	}
	var added []byte
	if front != nil {
		added = front()
	}
	if len(found) == 0 || len(added) == 0 && !slices.Contains(drop, true) {
		return object
	}
	if len(added) > 0 && !slices.Contains(drop, false) {
		added = added[:len(added)-1]
	}
	return join(object, added, found, func(i int) []byte {
		if drop[i] {
			return nil
		}
		return object[found[i].start:found[i].end]
	})
}

// Replace returns an array in which change has replaced each element; nil removes the element. If change
// returns every element unchanged, the result is the same slice.
func Replace(array json.RawMessage, change func(i int, element json.RawMessage) json.RawMessage) json.RawMessage {
	var found []span
	var changed []json.RawMessage
	same := true
	for _, where := range spans(array, '[', ']') {
		element := array[where.start:where.end:where.end]
		result := change(len(found), element)
		same = same && len(result) == len(element) && (len(result) == 0 || &result[0] == &element[0])
		found, changed = append(found, where), append(changed, result)
	}
	if same {
		return array
	}
	return join(array, nil, found, func(i int) []byte { return changed[i] })
}

// join returns the container with each part replaced by the result of part, and with front behind its opening
// bracket. An empty result removes the part with the comma and white space before it, or after it if it is the
// first.
func join(container json.RawMessage, front []byte, parts []span, part func(i int) []byte) json.RawMessage {
	opening := space(container, 0) + 1
	out := append(make([]byte, 0, len(container)+len(front)), container[:opening]...)
	out = append(append(out, front...), container[opening:parts[0].start]...)
	isFirst := true
	for i, where := range parts {
		raw := part(i)
		if len(raw) == 0 {
			continue
		}
		if !isFirst {
			out = append(out, container[parts[i-1].end:where.start]...)
		}
		out, isFirst = append(out, raw...), false
	}
	return append(out, container[parts[len(parts)-1].end:]...)
}

// spans yields the positions in an object or array; the keys of an array are empty. It ends at the first
// fault.
func spans(b []byte, opening, closing byte) iter.Seq2[span, span] {
	return func(yield func(key, value span) bool) {
		i := space(b, 0)
		if at(b, i) != opening {
			return
		}
		i = space(b, i+1)
		for i < len(b) && b[i] != closing {
			key := span{}
			if opening == '{' {
				if b[i] != '"' {
					return
				}
				end, ok := quoted(b, i)
				if key = (span{i, end}); !ok {
					return
				}
				if i = space(b, end); at(b, i) != ':' {
					return
				}
				i = space(b, i+1)
			}
			end, ok := skip(b, i)
			if !ok || !yield(key, span{i, end}) {
				return
			}
			if i = space(b, end); at(b, i) != ',' {
				return
			}
			i = space(b, i+1)
		}
	}
}
