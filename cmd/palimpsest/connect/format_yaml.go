package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// yamlFormat is YAML with a mapping at its top. It can set a value at the top, or an item of a list at the
// top.
type yamlFormat struct{}

func (yamlFormat) parse(text []byte) (map[string]any, error) {
	content := map[string]any{}
	if err := yaml.Unmarshal(text, &content); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if content == nil {
		content = map[string]any{}
	}
	return content, nil
}

var errYAML = errors.New("is written in a way that cannot be edited safely: make the change by hand, as docs/clients.md says")

func (f yamlFormat) set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	top, err := yamlTop(text)
	if err != nil {
		return nil, err
	}
	at := top.index(path[0])
	if at >= 0 && len(path) == 1 {
		text = top.cut(text, top.lines(at))
		return insert(text, top.start(text, at), yamlBlock(map[string]json.RawMessage{path[0]: value}, "", newlineOf(text))), nil
	}
	if at < 0 {
		return insert(text, len(text), yamlBlock(map[string]json.RawMessage{path[0]: nested(path[1:], value)}, "", newlineOf(text))), nil
	}
	list := top.values[at]
	if found := yamlItem(list, path[1]); found >= 0 {
		if text, err = f.remove(text, path); err != nil {
			return nil, err
		}
		return f.set(text, path, value)
	}
	if len(list.Content) == 0 {
		lines := top.lines(at)
		text = top.cut(text, lines)
		return insert(text, offsetOf(text, lines.from), yamlBlock(map[string]json.RawMessage{path[0]: nested(path[1:], value)}, "", newlineOf(text))), nil
	}
	if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("%s %w", path[0], errYAML)
	}
	item := yamlBlock([]json.RawMessage{value}, strings.Repeat(" ", list.Column-1), newlineOf(text))
	return insert(text, offsetOf(text, top.keys[at].Line+1), item), nil
}

func (f yamlFormat) remove(text []byte, path []string) ([]byte, error) {
	top, err := yamlTop(text)
	if err != nil {
		return nil, err
	}
	at := top.index(path[0])
	lines := top.lines(at)
	if len(path) == 1 {
		return top.cut(text, lines), nil
	}
	list := top.values[at]
	item := yamlItem(list, path[1])
	if list.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("%s %w", path[0], errYAML)
	}
	if len(list.Content) == 1 {
		text = top.cut(text, lines)
		return insert(text, offsetOf(text, lines.from), path[0]+": []"+newlineOf(text)), nil
	}
	lines.from = list.Content[item].Line
	if item+1 < len(list.Content) {
		lines.to = list.Content[item+1].Line
	}
	return top.cut(text, lines), nil
}

// yamlDocument is the mapping at the top of a text.
type yamlDocument struct {
	text         []byte
	keys, values []*yaml.Node
}

func yamlTop(text []byte) (yamlDocument, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return yamlDocument{}, fmt.Errorf("read YAML: %w", err)
	}
	top := yamlDocument{text: text}
	if len(document.Content) == 0 {
		return top, nil
	}
	mapping := document.Content[0]
	if mapping.Kind != yaml.MappingNode || mapping.Style&yaml.FlowStyle != 0 {
		return yamlDocument{}, fmt.Errorf("the file %w", errYAML)
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		top.keys, top.values = append(top.keys, mapping.Content[i]), append(top.values, mapping.Content[i+1])
	}
	return top, nil
}

func (d yamlDocument) index(key string) int {
	return slices.IndexFunc(d.keys, func(node *yaml.Node) bool { return node.Value == key })
}

// yamlLines are lines of a text, from 1; to is the first one after them.
type yamlLines struct{ from, to int }

// lines returns the lines of a key at the top and its value.
func (d yamlDocument) lines(at int) yamlLines {
	lines := yamlLines{d.keys[at].Line, 1 + bytes.Count(d.text, []byte("\n")) + 1}
	if at+1 < len(d.keys) {
		lines.to = d.keys[at+1].Line
	}
	return lines
}

func (d yamlDocument) start(text []byte, at int) int { return offsetOf(text, d.keys[at].Line) }

// cut returns a text without lines. It keeps empty lines and comments at their end.
func (d yamlDocument) cut(text []byte, lines yamlLines) []byte {
	all := slices.Collect(bytes.Lines(text))
	to := min(lines.to-1, len(all))
	for to > lines.from {
		line := bytes.TrimSpace(all[to-1])
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("...")) {
			break
		}
		to--
	}
	return bytes.Join(slices.Delete(all, lines.from-1, to), nil)
}

// offsetOf returns the offset of a line's start.
func offsetOf(text []byte, line int) int {
	at := 0
	for range line - 1 {
		at = endOfLine(text, at)
	}
	return at
}

// yamlItem returns the index of the list item that a step selects, or -1.
func yamlItem(list *yaml.Node, step string) int {
	member, value, _ := selector(step)
	return slices.IndexFunc(list.Content, func(item *yaml.Node) bool {
		for i := 0; i+1 < len(item.Content); i += 2 {
			if item.Content[i].Value == member {
				return item.Content[i+1].Value == value
			}
		}
		return false
	})
}

// yamlBlock formats a value in block style.
func yamlBlock[T any](value T, indent, newline string) string {
	var node yaml.Node
	if err := yaml.Unmarshal(encode(value), &node); err != nil { // JSON is YAML
		panic("connect: " + err.Error()) // it was encoded here
	}
	openStyle(&node)
	var laid bytes.Buffer
	encoder := yaml.NewEncoder(&laid)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		panic("connect: " + err.Error()) // a node just read always encodes
	}
	var block strings.Builder
	for line := range strings.Lines(laid.String()) {
		block.WriteString(indent + strings.TrimSuffix(line, "\n") + newline)
	}
	return block.String()
}

// openStyle gives a node and its children the style that people use.
func openStyle(node *yaml.Node) {
	node.Style = 0
	for _, inside := range node.Content {
		openStyle(inside)
	}
}
