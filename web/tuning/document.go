package tuning

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
)

// document returns the saved YAML with the settings that are not as they are saved in
// their place; one that is the default is left out. What else the YAML holds,
// comments too, stays. The error is a pipeline.Invalid for what a person can mend.
func (v values) document(yamlSaved string, saved, defaults values) (string, error) {
	edits := []pipeline.Edit{{Path: "modules"}} // they have a column of their own
	for _, s := range settings() {
		typed := v.Set[s.path()]
		if v.mustHave(s) && typed == "" {
			return "", pipeline.Invalid{Field: s.path(), Message: "is empty"}
		}
		if s.parent() != "" || !v.isChanged(s, saved) {
			continue
		}
		edit := pipeline.Edit{Path: s.path()}
		switch {
		case !v.isChanged(s, defaults):
		case len(s.Members) > 0 && typed == "true":
			edit.Value = v.members(s.path())
		default:
			edit.Value = s.node(typed)
		}
		edits = append(edits, edit)
	}
	return pipeline.EditYAML(yamlSaved, edits...)
}

// mustHave reports whether a setting may not be left empty.
func (v values) mustHave(s setting) bool {
	if s.First != "" {
		return v.Set[s.parent()] == "true" // without it, it would be off
	}
	return s.Kind == pipeline.Number && !s.IsOptional
}

// isChanged reports whether a setting or one of its members is not as in others.
func (v values) isChanged(s setting, others values) bool {
	if !s.isSame(v.Set[s.path()], others.Set[s.path()]) {
		return true
	}
	if len(s.Members) == 0 || v.Set[s.path()] != "true" {
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
