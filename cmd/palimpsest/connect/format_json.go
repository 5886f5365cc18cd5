package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFormat is JSON, with or without comments and trailing commas.
type jsonFormat struct{}

func (jsonFormat) parse(text []byte) (map[string]any, error) {
	content := map[string]any{}
	if len(bytes.TrimSpace(text)) == 0 {
		return content, nil
	}
	standard, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if err := json.Unmarshal(standard, &content); err != nil || content == nil {
		return nil, errors.New("the file holds no JSON object")
	}
	return content, nil
}

func (f jsonFormat) set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	style := jsonStyleOf(text)
	at, here := &root, ""
	for i, step := range path {
		next, inside, err := style.child(at, here, step)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(path[:i], "."), err)
		}
		if next == nil {
			style.add(at, here, step, nested(path[i+1:], value))
			return root.Pack(), nil
		}
		at, here = next, inside
	}
	style.replace(at, here, value)
	return root.Pack(), nil
}

func (f jsonFormat) remove(text []byte, path []string) ([]byte, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	around := &root
	for _, step := range path[:len(path)-1] {
		around = find(around, step)
	}
	step := path[len(path)-1]
	switch in := around.Value.(type) {
	case *hujson.Object:
		at := memberIn(in, step)
		removed := in.Members[at]
		in.Members = slices.Delete(in.Members, at, at+1)
		switch {
		case at < len(in.Members):
			in.Members[at].Name.BeforeExtra = keepComments(removed.Name.BeforeExtra, in.Members[at].Name.BeforeExtra)
		case at == 0:
			in.AfterExtra = keepComments(removed.Name.BeforeExtra, nil)
		default:
			in.Members[at-1].Value.AfterExtra = removed.Value.AfterExtra
			in.AfterExtra = keepComments(removed.Name.BeforeExtra, in.AfterExtra)
		}
	case *hujson.Array:
		at := elementIn(in, step)
		removed := in.Elements[at]
		in.Elements = slices.Delete(in.Elements, at, at+1)
		switch {
		case at < len(in.Elements):
			in.Elements[at].BeforeExtra = keepComments(removed.BeforeExtra, in.Elements[at].BeforeExtra)
		case at == 0:
			in.AfterExtra = keepComments(removed.BeforeExtra, nil)
		default:
			in.Elements[at-1].AfterExtra = removed.AfterExtra
			in.AfterExtra = keepComments(removed.BeforeExtra, in.AfterExtra)
		}
	}
	return root.Pack(), nil
}

// keepComments returns the space after a removed value, preceded by the comments that came before the
// value.
func keepComments(removed, following hujson.Extra) hujson.Extra {
	if len(bytes.TrimSpace(removed)) == 0 {
		return following
	}
	end := bytes.LastIndexByte(removed, '\n') + 1
	if end == 0 {
		end = len(removed)
	}
	kept := bytes.Clone(removed[:end])
	if bytes.HasPrefix(following, []byte("\n")) && bytes.HasSuffix(kept, []byte("\n")) {
		following = following[1:]
	}
	return append(kept, following...)
}

// nested returns a value inside the objects and lists of its path.
func nested(path []string, value json.RawMessage) json.RawMessage {
	for i, p := range slices.Backward(path) {
		if _, _, item := selector(p); item && i == len(path)-1 {
			value = json.RawMessage("[" + string(value) + "]")
			continue
		}
		value = json.RawMessage("{" + string(encode(p)) + ":" + string(value) + "}")
	}
	return value
}

// find returns the value at a step; nil if it is absent.
func find(in *hujson.Value, step string) *hujson.Value {
	switch in := in.Value.(type) {
	case *hujson.Object:
		if at := memberIn(in, step); at >= 0 {
			return &in.Members[at].Value
		}
	case *hujson.Array:
		if at := elementIn(in, step); at >= 0 {
			return &in.Elements[at]
		}
	}
	return nil
}

// memberIn returns the index of an object's last member with a name, or -1. The last one counts.
func memberIn(in *hujson.Object, name string) int {
	for i, v := range slices.Backward(in.Members) {
		if literal, is := v.Name.Value.(hujson.Literal); is && literal.String() == name {
			return i
		}
	}
	return -1
}

func elementIn(in *hujson.Array, step string) int {
	member, value, _ := selector(step)
	for i := range in.Elements {
		found := find(&in.Elements[i], member)
		if found == nil {
			continue
		}
		if literal, is := found.Value.(hujson.Literal); is && literal.String() == value {
			return i
		}
	}
	return -1
}

// jsonStyle is the layout of a text.
type jsonStyle struct {
	newline string
	unit    string // of indentation
}

func jsonStyleOf(text []byte) jsonStyle {
	style := jsonStyle{newline: "\n", unit: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		style.newline = "\r\n"
	}
	for line := range bytes.Lines(text) {
		bare := bytes.TrimLeft(line, " \t")
		if indent := line[:len(line)-len(bare)]; len(indent) > 0 && len(bytes.TrimSpace(bare)) > 0 && bare[0] == '"' {
			style.unit = string(indent)
			break
		}
	}
	return style
}

// child returns a value's child at a step, and the indentation of the line that it begins on; nil if it is
// absent.
func (s jsonStyle) child(in *hujson.Value, here, step string) (*hujson.Value, string, error) {
	_, _, item := selector(step)
	switch composite := in.Value.(type) {
	case *hujson.Object:
		if at := memberIn(composite, step); at >= 0 {
			return &composite.Members[at].Value, indentOf(composite.Members[at].Name.BeforeExtra, here), nil
		}
	case *hujson.Array:
		if !item {
			return nil, "", errors.New("is a list: repair that by hand first")
		}
		if at := elementIn(composite, step); at >= 0 {
			return &composite.Elements[at], indentOf(composite.Elements[at].BeforeExtra, here), nil
		}
	default:
		return nil, "", errors.New("is not a group of settings: repair that by hand first")
	}
	return nil, "", nil
}

// indentOf returns the indentation at the end of a space, or a default if the space has no line break.
func indentOf(space hujson.Extra, otherwise string) string {
	at := bytes.LastIndexByte(space, '\n')
	if at < 0 {
		return otherwise
	}
	return string(space[at+1:])
}

// add appends a value to an object or a list.
func (s jsonStyle) add(in *hujson.Value, here, step string, value json.RawMessage) {
	switch in := in.Value.(type) {
	case *hujson.Object:
		member := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(step)}}
		colon := hujson.Extra(" ")
		if count := len(in.Members); count > 0 {
			last := in.Members[count-1]
			member.Name.BeforeExtra, member.Value = s.next(last.Name.BeforeExtra, last.Value.AfterExtra, here, value, &in.AfterExtra)
			colon = last.Value.BeforeExtra
		} else {
			member.Name.BeforeExtra, member.Value = s.first(here, value, &in.AfterExtra)
		}
		member.Value.BeforeExtra = colon
		in.Members = append(in.Members, member)
	case *hujson.Array:
		var space hujson.Extra
		var element hujson.Value
		if count := len(in.Elements); count > 0 {
			last := in.Elements[count-1]
			space, element = s.next(last.BeforeExtra, last.AfterExtra, here, value, &in.AfterExtra)
		} else {
			space, element = s.first(here, value, &in.AfterExtra)
		}
		element.BeforeExtra = space
		in.Elements = append(in.Elements, element)
	}
}

// first returns the space before the first element between two brackets, and its value.
func (s jsonStyle) first(here string, value json.RawMessage, inside *hujson.Extra) (hujson.Extra, hujson.Value) {
	space := append(trimmed(*inside), s.newline+here+s.unit...) // comments between the brackets stay
	*inside = hujson.Extra(s.newline + here)
	return space, s.value(value, here+s.unit)
}

// next returns the space before an element added after the last one, and its value. lastSpace is the space
// before the last one, comma is not nil if a comma follows it, and closing is the space before the bracket.
func (s jsonStyle) next(lastSpace, comma hujson.Extra, here string, value json.RawMessage, closing *hujson.Extra) (hujson.Extra, hujson.Value) {
	space, next := hujson.Extra(" "), parsed(value)
	if bytes.ContainsRune(lastSpace, '\n') {
		indent := indentOf(lastSpace, here+s.unit)
		space, next = hujson.Extra(s.newline+indent), s.value(value, indent)
	}
	comments := trimmed(*closing) // keep them after the last one
	*closing = bytes.Clone((*closing)[len(comments):])
	if comma != nil {
		next.AfterExtra = hujson.Extra{}
	}
	return append(comments, space...), next
}

// trimmed returns a space up to the end of its comments.
func trimmed(space hujson.Extra) hujson.Extra { return bytes.Clone(bytes.TrimRight(space, " \t\r\n")) }

// replace puts a value in place of another one.
func (s jsonStyle) replace(at *hujson.Value, here string, value json.RawMessage) {
	at.Value = s.value(value, here).Value
}

// value lays out a value whose first line is indented.
func (s jsonStyle) value(value json.RawMessage, indent string) hujson.Value {
	var laid bytes.Buffer
	if err := json.Indent(&laid, value, indent, s.unit); err != nil {
		panic("connect: " + err.Error()) // it was encoded here
	}
	return parsed(bytes.ReplaceAll(laid.Bytes(), []byte("\n"), []byte(s.newline)))
}

func parsed(value []byte) hujson.Value {
	read, err := hujson.Parse(value)
	if err != nil {
		panic("connect: " + err.Error()) // it was encoded here
	}
	return read
}
