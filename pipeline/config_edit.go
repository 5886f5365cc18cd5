package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Difference is a setting with different values in two pipelines, both as YAML text.
type Difference struct {
	Path   string // "ipc.targetUtilization"
	Before string
	After  string
}

// Differences returns the differences between two pipelines in the order of the settings.
func (c *Catalog) Differences(before, after Config) []Difference {
	var found []Difference
	for _, entry := range c.entries {
		old, now := entry.text(&before), entry.text(&after)
		if old != now {
			found = append(found, Difference{Path: entry.path, Before: old, After: now})
		}
	}
	return found
}

// text returns a value of a config in one line.
func (e entry) text(config *Config) string {
	node, err := e.access.write(config)
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

// Written returns a value of a config as YAML on one line; "" if the path is not that of a setting.
func (c *Catalog) Written(config Config, path string) string {
	at := slices.IndexFunc(c.entries, func(e entry) bool { return e.path == path })
	if at < 0 {
		return ""
	}
	return c.entries[at].text(&config)
}

// Document returns a layer as one YAML document that holds its modules as a setting.
func (c *Catalog) Document(layer Layer) (string, error) {
	if layer.Modules == "" {
		return layer.YAML, nil
	}
	modules, err := c.ParseModules(layer.Modules)
	if err != nil {
		return "", err
	}
	return c.edit(layer.YAML, []string{modulesPath}, Config{Modules: modules}, Config{})
}

// Edit returns a layer's document with the values of wanted at the paths. Values equal to those of base are
// left out. Comments stay.
func (c *Catalog) Edit(layer Layer, wanted, base Config, paths []string) (string, error) {
	document, err := c.Document(layer)
	if err != nil {
		return "", err
	}
	return c.edit(document, paths, wanted, base)
}

func (c *Catalog) edit(document string, paths []string, wanted, base Config) (string, error) {
	var edits []Edit
	for _, entry := range c.entries {
		if !slices.Contains(paths, entry.path) {
			continue
		}
		node, err := entry.access.write(&wanted)
		if err != nil {
			return "", err
		}
		if entry.text(&wanted) == entry.text(&base) {
			node = nil
		}
		edits = append(edits, Edit{Path: entry.path, Value: node})
	}
	return EditYAML(document, edits...)
}

// Edit is a change of one setting of a document.
type Edit struct {
	Path  string     // "ipc.targetUtilization"
	Value *yaml.Node // nil deletes the setting
}

// EditYAML returns a document with some of its settings changed. It deletes sections that become empty and
// keeps everything else, including comments. The error is an Invalid if the document is not YAML or becomes
// too long.
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

// member returns a value of a mapping; nil if absent.
func member(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// put sets a value of a mapping and keeps the comment of the old one; nil deletes it.
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

// Changes returns the differences between the pipelines of two layers above the same layer below. Errors are
// those of Resolve.
func (c *Catalog) Changes(before, after Layer, below Layer) ([]Difference, error) {
	old, _, err := c.Resolve(below, before)
	if err != nil {
		return nil, err
	}
	now, _, err := c.Resolve(below, after)
	if err != nil {
		return nil, err
	}
	return c.Differences(old, now), nil
}
