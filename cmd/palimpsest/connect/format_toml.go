package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFormat is TOML. It edits line by line: it replaces a value in place, adds a new one after the last of
// its table, and adds a new table at the end.
type tomlFormat struct{}

func (tomlFormat) parse(text []byte) (map[string]any, error) {
	content := map[string]any{}
	if err := toml.Unmarshal(text, &content); err != nil {
		if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, _ := decode.Position()
			return nil, fmt.Errorf("line %d: %s", row, strings.TrimPrefix(decode.Error(), "toml: "))
		}
		return nil, err
	}
	return content, nil
}

// tomlLine is a table's head or a key with its value.
type tomlLine struct {
	head       bool
	list       bool // the head of an item in a list of tables
	path       []string
	start, end int // of the lines, without those that a comment adds
	value      int // where the value begins
}

func tomlLines(text []byte) ([]tomlLine, error) {
	var parser unstable.Parser
	parser.Reset(text)
	var lines []tomlLine
	var table []string
	list := false
	for parser.NextExpression() {
		node := parser.Expression()
		var keys []string
		last := 0
		for key := node.Key(); key.Next(); {
			keys = append(keys, string(key.Node().Data))
			last = int(key.Node().Raw.Offset + key.Node().Raw.Length)
			if len(keys) == 1 {
				lines = append(lines, tomlLine{start: startOfLine(text, int(key.Node().Raw.Offset))})
			}
		}
		if len(keys) == 0 {
			continue // a comment
		}
		line := &lines[len(lines)-1]
		switch node.Kind {
		case unstable.Table, unstable.ArrayTable:
			line.head, list = true, node.Kind == unstable.ArrayTable
			table, line.path, line.end = keys, keys, last
		default:
			line.path = slices.Concat(table, keys)
			line.end = int(node.Raw.Offset + node.Raw.Length)
			line.value = last + bytes.IndexByte(text[last:], '=') + 1
			line.value += len(text[line.value:]) - len(bytes.TrimLeft(text[line.value:], " \t"))
		}
		line.list = list
	}
	return lines, parser.Error()
}

func startOfLine(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// endOfLine returns the start of the line after a position.
func endOfLine(text []byte, at int) int {
	if next := bytes.IndexByte(text[at:], '\n'); next >= 0 {
		return at + next + 1
	}
	return len(text)
}

func (f tomlFormat) set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	lines, err := tomlLines(text)
	if err != nil {
		return nil, err
	}
	if group, is := plain(value).(map[string]any); is {
		if isThere(lines, path) {
			if text, err = f.remove(text, path); err != nil {
				return nil, err
			}
		}
		return f.table(text, path, value, group)
	}
	for _, line := range lines {
		if !line.head && !line.list && slices.Equal(line.path, path) {
			return slices.Concat(text[:line.value], []byte(tomlValue(value)), text[line.end:]), nil
		}
	}
	around := path[:len(path)-1]
	added := tomlKey(path[len(path)-1]) + " = " + tomlValue(value) + newlineOf(text)
	at := -1
	for _, line := range lines {
		switch {
		case line.head && !line.list && slices.Equal(line.path, around),
			!line.head && !line.list && len(line.path) == len(path) && slices.Equal(line.path[:len(around)], around):
			at = endOfLine(text, line.end)
		}
	}
	switch {
	case at >= 0:
		return insert(text, at, added), nil
	case len(around) == 0:
		return insert(text, 0, added), nil
	}
	return f.table(text, around, encode(map[string]json.RawMessage{path[len(path)-1]: value}), nil)
}

// table appends a table and its subtables.
func (f tomlFormat) table(text []byte, path []string, value json.RawMessage, _ map[string]any) ([]byte, error) {
	var head []string
	for _, step := range path {
		head = append(head, tomlKey(step))
	}
	newline := newlineOf(text)
	var added strings.Builder
	if len(bytes.TrimSpace(text)) > 0 {
		added.WriteString(newline)
	}
	added.WriteString("[" + strings.Join(head, ".") + "]" + newline)
	for _, member := range members(value) {
		added.WriteString(tomlKey(member.name) + " = " + tomlValue(member.value) + newline)
	}
	return insert(text, len(text), added.String()), nil
}

func (f tomlFormat) remove(text []byte, path []string) ([]byte, error) {
	lines, err := tomlLines(text)
	if err != nil {
		return nil, err
	}
	for i, line := range slices.Backward(lines) {
		if line.list || len(line.path) < len(path) || !slices.Equal(line.path[:len(path)], path) {
			continue
		}
		start, end := line.start, endOfLine(text, line.end)
		if line.head && start > 0 && i > 0 { // remove the empty line before a table with it
			if before := startOfLine(text, start-1); len(bytes.TrimSpace(text[before:start])) == 0 {
				start = before
			}
		}
		text = slices.Concat(text[:start], text[end:])
	}
	return text, nil
}

// isThere reports whether there is a line at or below a path.
func isThere(lines []tomlLine, path []string) bool {
	return slices.ContainsFunc(lines, func(line tomlLine) bool {
		return len(line.path) >= len(path) && slices.Equal(line.path[:len(path)], path)
	})
}

// insert inserts lines into a text.
func insert(text []byte, at int, added string) []byte {
	if at > 0 && text[at-1] != '\n' {
		added = newlineOf(text) + added
	}
	return slices.Concat(text[:at], []byte(added), text[at:])
}

func newlineOf(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// tomlKey returns a key in TOML's syntax.
func tomlKey(key string) string {
	if key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return key
	}
	return tomlValue(encode(key))
}

// tomlValue returns a value in TOML's syntax on one line. Strings, numbers, and lists of them have the same
// syntax as in JSON.
func tomlValue(value json.RawMessage) string {
	switch plain(value).(type) {
	case map[string]any:
		var inside []string
		for _, member := range members(value) {
			inside = append(inside, tomlKey(member.name)+" = "+tomlValue(member.value))
		}
		return "{ " + strings.Join(inside, ", ") + " }"
	case []any:
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			panic("connect: " + err.Error()) // it was encoded here
		}
		var inside []string
		for _, item := range items {
			inside = append(inside, tomlValue(item))
		}
		return "[" + strings.Join(inside, ", ") + "]"
	}
	return string(value)
}

// member is a member of an object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of an object in their order.
func members(object json.RawMessage) []member {
	decoder := json.NewDecoder(bytes.NewReader(object))
	var found []member
	_, err := decoder.Token()
	for err == nil && decoder.More() {
		var name json.Token
		var one member
		if name, err = decoder.Token(); err == nil {
			one.name, _ = name.(string)
			err = decoder.Decode(&one.value)
		}
		found = append(found, one)
	}
	if err != nil {
		panic("connect: " + err.Error()) // it was encoded here
	}
	return found
}
