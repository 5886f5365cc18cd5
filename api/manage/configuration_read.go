package manage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// configReader reads a configuration file and collects its faults.
type configReader struct {
	faults pipeline.Faults
	lines  map[string]int // by places
}

// configMember is a member of a mapping in a configuration file.
type configMember struct {
	name, place string
	node        *yaml.Node
}

func (r *configReader) wrong(place, message string) {
	r.faults = append(r.faults, pipeline.Invalid{Field: place, Message: message, Line: r.lineOf(place)})
}

// lineOf returns the line of a place, or of its nearest parent with a line.
func (r *configReader) lineOf(place string) int {
	for {
		if line, known := r.lines[place]; known {
			return line
		}
		end := strings.LastIndex(place, ".")
		if end < 0 {
			return 0
		}
		place = place[:end]
	}
}

// refused notes an error that a person can correct, at its place below another; it returns others.
func (r *configReader) refused(place string, err error) error {
	if faults, is := errors.AsType[pipeline.Faults](err); is {
		for _, fault := range faults {
			fault.Field = strings.TrimSuffix(place+"."+fault.Field, ".")
			r.faults = append(r.faults, fault)
		}
		return nil
	}
	if bad, is := errors.AsType[malformed](err); is {
		r.wrong(place, bad.message)
		return nil
	}
	if field, message, is := invalid(err); is {
		r.wrong(strings.TrimSuffix(place+"."+field, "."), message)
		return nil
	}
	return err
}

// secretNames are members that people may expect in a file.
func secretNames() []string { return []string{"secret", "key", "hash", "token", "password"} }

// members returns the known members of a mapping.
func (r *configReader) members(place string, node *yaml.Node, known []string) []configMember {
	if node.Kind != yaml.MappingNode {
		r.wrong(place, "is not a mapping of names to values")
		return nil
	}
	var found []configMember
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		member := configMember{name: name, place: strings.TrimPrefix(place+"."+name, "."), node: node.Content[i+1]}
		twice := seen[name]
		seen[name] = true
		if first := r.lines[member.place]; twice {
			r.lines[member.place] = node.Content[i].Line
			r.wrong(member.place, fmt.Sprintf("is set twice, first on line %d; keep one", first))
			continue
		}
		r.lines[member.place] = node.Content[i].Line
		switch {
		case known == nil || slices.Contains(known, name):
			found = append(found, member)
		case slices.Contains(secretNames(), name):
			r.wrong(member.place, "is a secret; an import takes none: take it out of the file")
		default:
			r.wrong(member.place, unknownMember(name, known))
		}
	}
	return found
}

func unknownMember(name string, known []string) string {
	said := "is unknown; known are " + strings.Join(known, ", ")
	if meant := pipeline.Nearest(name, known); meant != "" {
		said += ". Did you mean " + meant + "?"
	}
	return said
}

// items returns the elements of a list with their places, named as they are or counted.
func (r *configReader) items(member configMember) []configMember {
	if member.node.Kind != yaml.SequenceNode {
		r.wrong(member.place, "is not a list")
		return nil
	}
	var found []configMember
	for i, node := range member.node.Content {
		name := strconv.Itoa(i + 1)
		for j := 0; node.Kind == yaml.MappingNode && j+1 < len(node.Content); j += 2 {
			if node.Content[j].Value == "name" && node.Content[j+1].Value != "" {
				name = node.Content[j+1].Value
			}
		}
		place := member.place + "." + name
		if _, twice := r.lines[place]; twice {
			place += fmt.Sprintf(" (%d)", i+1)
		}
		r.lines[place] = node.Line
		found = append(found, configMember{name: name, place: place, node: node})
	}
	return found
}

// takeAll reads all members of a mapping with known names into a body of the API.
func takeAll[T any](r *configReader, item configMember, into *T, known ...string) bool {
	isRead := true
	for _, member := range r.members(item.place, item.node, known) {
		isRead = take(r, member, into) && isRead
	}
	return isRead
}

// take reads one member with a known name into a body of the API.
func take[T any](r *configReader, member configMember, into *T) bool {
	var value any
	err := member.node.Decode(&value)
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(map[string]any{member.name: value})
	}
	if err != nil {
		r.wrong(member.place, "is no value that JSON has")
		return false
	}
	err = json.Unmarshal(raw, into)
	if err == nil {
		return true
	}
	message := "cannot be read"
	if bad, is := errors.AsType[malformed](explain(err)); is {
		message = bad.message
	}
	if value, is := errors.AsType[tenants.Invalid](explain(err)); is {
		message = value.Message
	}
	r.wrong(member.place, message)
	return false
}
