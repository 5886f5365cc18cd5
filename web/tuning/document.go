package tuning

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
)

// document returns the saved YAML with the settings that are not as they are saved in
// place of theirs; one that is the default is left out. What else the YAML holds,
// comments too, stays. The error is a pipeline.Invalid for what a person can mend.
func (v values) document(yamlSaved string, saved, defaults values) (string, error) {
	root, err := mappingOf(yamlSaved)
	if err != nil {
		return "", err
	}
	drop(root, "modules") // they have a column of their own
	for _, s := range settings() {
		typed := v.Set[s.path()]
		if v.mustHave(s) && typed == "" {
			return "", pipeline.Invalid{Field: s.path(), Message: "is empty"}
		}
		if s.parent() != "" || !v.isChanged(s, saved) {
			continue
		}
		if !v.isChanged(s, defaults) {
			unset(root, s.Module, s.Name)
			continue
		}
		node := s.node(typed)
		if s.path() == summaryPath && typed == "true" {
			node = v.members(s.path())
		}
		set(root, s.Module, s.Name, node)
	}
	if len(root.Content) == 0 {
		return "", nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return "", fmt.Errorf("write settings: %w", err)
	}
	return out.String(), nil
}

// mustHave reports whether a setting may not be left empty.
func (v values) mustHave(s setting) bool {
	if s.path() == summaryPath+".model" {
		return v.Set[summaryPath] == "true" // without a model it would be off
	}
	return s.Kind == number && !s.MayMiss
}

// isChanged reports whether a setting or one of its members is not as in others.
func (v values) isChanged(s setting, others values) bool {
	if !s.isSame(v.Set[s.path()], others.Set[s.path()]) {
		return true
	}
	if s.path() != summaryPath || v.Set[s.path()] != "true" {
		return false
	}
	return slices.ContainsFunc(settings(), func(member setting) bool {
		return member.parent() == s.path() && !member.isSame(v.Set[member.path()], others.Set[member.path()])
	})
}

// members returns the members of a setting that were typed.
func (v values) members(parent string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, s := range settings() {
		if s.parent() != parent || strings.TrimSpace(v.Set[s.path()]) == "" {
			continue
		}
		_, name, _ := strings.Cut(s.Name, ".")
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, s.node(v.Set[s.path()]))
	}
	return node
}

// mappingOf returns the mapping that a document is; an empty one for none.
func mappingOf(document string) (*yaml.Node, error) {
	var read yaml.Node
	if err := yaml.Unmarshal([]byte(document), &read); err != nil {
		return nil, fmt.Errorf("saved settings: %w", err)
	}
	if len(read.Content) == 0 || read.Content[0].Kind != yaml.MappingNode {
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, nil
	}
	return read.Content[0], nil
}

// member returns where the value of a name stands in a mapping; below 0 if it is not
// there.
func member(mapping *yaml.Node, name string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return i + 1
		}
	}
	return -1
}

func drop(mapping *yaml.Node, name string) {
	if at := member(mapping, name); at > 0 {
		mapping.Content = slices.Delete(mapping.Content, at-1, at+1)
	}
}

// unset removes a setting, and its section with the last one.
func unset(root *yaml.Node, section, name string) {
	at := member(root, section)
	if at < 0 {
		return
	}
	drop(root.Content[at], name)
	if len(root.Content[at].Content) == 0 {
		drop(root, section)
	}
}

// set sets a setting and leaves the comments on it.
func set(root *yaml.Node, section, name string, value *yaml.Node) {
	at := member(root, section)
	switch {
	case at < 0:
		root.Content = append(root.Content, scalar(section), &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"})
		at = len(root.Content) - 1
	case root.Content[at].Kind != yaml.MappingNode: // a section without a value
		root.Content[at] = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	mapping := root.Content[at]
	if within := member(mapping, name); within > 0 {
		value.LineComment = mapping.Content[within].LineComment
		mapping.Content[within] = value
		return
	}
	mapping.Content = append(mapping.Content, scalar(name), value)
}
