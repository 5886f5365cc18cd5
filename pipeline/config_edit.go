package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Difference is a setting that two pipelines have differently, with both values as
// YAML writes them.
type Difference struct {
	Path   string // "ipc.targetUtilization"
	Before string
	After  string
}

// Differences returns what differs between two pipelines, in the order in which
// settings are written.
func Differences(before, after Config) []Difference {
	var found []Difference
	for _, setting := range settings() {
		old, now := setting.text(&before), setting.text(&after)
		if old != now {
			found = append(found, Difference{Path: setting.path, Before: old, After: now})
		}
	}
	return found
}

// text returns the value of a setting in one line.
func (s setting) text(config *Config) string {
	node, err := s.write(config)
	if err != nil {
		return err.Error() // only a field of a new type without a form in YAML
	}
	if node.Kind == yaml.ScalarNode && node.Value != "" {
		return node.Value
	}
	text, err := encoded(node)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(text)
}

// Document returns what the layer sets as one document of YAML, in which its modules
// are a setting like others.
func (l Layer) Document() (string, error) {
	if l.Modules == "" {
		return l.YAML, nil
	}
	modules, err := ParseModules(l.Modules)
	if err != nil {
		return "", err
	}
	return l.edit([]string{"modules"}, Config{Modules: modules}, Config{})
}

// With returns the layer's document with the values of wanted in place of its own
// where the paths say so; what base has alike is left out. Comments stay.
func (l Layer) With(wanted, base Config, paths []string) (string, error) {
	document, err := l.Document()
	if err != nil {
		return "", err
	}
	return Layer{YAML: document}.edit(paths, wanted, base)
}

func (l Layer) edit(paths []string, wanted, base Config) (string, error) {
	var edits []Edit
	for _, setting := range settings() {
		if !slices.Contains(paths, setting.path) {
			continue
		}
		node, err := setting.write(&wanted)
		if err != nil {
			return "", err
		}
		if setting.text(&wanted) == setting.text(&base) {
			node = nil
		}
		edits = append(edits, Edit{Path: setting.path, Value: node})
	}
	return EditYAML(l.YAML, edits...)
}

// Edit is a setting of a document and the value that it is to have.
type Edit struct {
	Path  string     // "ipc.targetUtilization"
	Value *yaml.Node // nil: the setting is left out
}

// EditYAML returns a document with some of its settings changed; sections that are
// empty then are left out. All else stays, comments too. The error is an Invalid for a
// document that is not YAML or grows too long.
func EditYAML(document string, edits ...Edit) (string, error) {
	root, fault := ParseYAML(document, maxYAML)
	if fault != nil {
		return "", *fault
	}
	if root == nil {
		root = &yaml.Node{Kind: yaml.MappingNode}
	}
	for _, edit := range edits {
		section, name, nested := strings.Cut(edit.Path, ".")
		if !nested {
			put(root, section, edit.Value)
			continue
		}
		inside := member(root, section)
		if inside == nil || inside.Kind != yaml.MappingNode {
			inside = &yaml.Node{Kind: yaml.MappingNode}
		}
		put(inside, name, edit.Value)
		if len(inside.Content) == 0 {
			inside = nil
		}
		put(root, section, inside)
	}
	if len(root.Content) == 0 {
		return "", nil
	}
	edited, err := encoded(root)
	if err == nil && len(edited) > maxYAML {
		err = Invalid{Message: fmt.Sprintf("the config has %d bytes; allowed are %d", len(edited), maxYAML)}
	}
	return edited, err
}

// member returns a value of a mapping; nil where it has none of the name.
func member(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// put sets a value of a mapping, with the comments of the one before; nil takes it away.
func put(mapping *yaml.Node, name string, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value != name {
			continue
		}
		if value == nil {
			mapping.Content = slices.Delete(mapping.Content, i, i+2)
			return
		}
		value.LineComment = mapping.Content[i+1].LineComment
		mapping.Content[i+1] = value
		return
	}
	if value != nil {
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	}
}

// Changes returns what differs between the pipelines that two layers make above the
// same others. The error is that of Resolve.
func Changes(before, after Layer, below Layer) ([]Difference, error) {
	old, _, err := Resolve(below, before)
	if err != nil {
		return nil, err
	}
	now, _, err := Resolve(below, after)
	if err != nil {
		return nil, err
	}
	return Differences(old, now), nil
}
