package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxYAML bounds the YAML of a layer, in bytes.
const maxYAML = 64 << 10

// Faults are the errors of a document, by its lines. errors.As finds the first.
type Faults []Invalid

// Error implements error.
func (f Faults) Error() string {
	said := make([]string, len(f))
	for i, fault := range f {
		if said[i] = fault.Error(); fault.Line > 0 {
			said[i] = fmt.Sprintf("line %d: %s", fault.Line, said[i])
		}
	}
	return strings.Join(said, "; ")
}

// Unwrap returns the faults one by one.
func (f Faults) Unwrap() []error {
	each := make([]error, len(f))
	for i, fault := range f {
		each[i] = fault
	}
	return each
}

// Check returns all errors of a layer above others, as Faults. An error in the layers below is returned the
// way Resolve returns it, because it isn't this layer's fault.
func (c *Catalog) Check(layer Layer, below ...Layer) error {
	config, sources, err := c.Resolve(below...)
	if err != nil {
		return err
	}
	read, faults := c.read(layer)
	faults = append(faults, c.apply(read, &config, sources)...)
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b Invalid) int { return a.Line - b.Line })
	return faults
}

// ReadNode returns the layer that a mapping of a larger document makes, and the faults of its unreadable
// values. The layer holds the rest.
func (c *Catalog) ReadNode(source Source, node *yaml.Node) (Layer, Faults) {
	layer := Layer{Source: source, isRead: true}
	var faults Faults
	layer.values, faults = c.valuesOf(node)
	return layer, faults
}

// read returns a layer with the readable part of its YAML read, and the faults of the rest.
func (c *Catalog) read(l Layer) (Layer, Faults) {
	if l.isRead || l.YAML == "" {
		return l, nil
	}
	var faults Faults
	switch node, err := ParseYAML(l.YAML, maxYAML); {
	case err != nil:
		faults = Faults{*err}
	case node != nil:
		l.values, faults = c.valuesOf(node)
	}
	l.isRead = true
	return l, faults
}

// ParseYAML returns the single value of a YAML or JSON document; nil if it holds only comments. The Invalid
// gives the line of a syntax error, or says that the document has more than most bytes.
func ParseYAML(document string, most int) (*yaml.Node, *Invalid) {
	if len(document) > most {
		return nil, &Invalid{Message: fmt.Sprintf("the config has %d bytes; allowed are %d", len(document), most)}
	}
	decoder := yaml.NewDecoder(strings.NewReader(document))
	var root, second yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, &Invalid{Message: "the config is no YAML: " + advised(err), Line: brokenAt(document)}
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Invalid{Message: "a second document begins; a config is one: take the line --- away", Line: second.Line}
	}
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil, nil
	}
	return root.Content[0], nil
}

// advised returns the parser's message with advice. It drops the line number, because that often is the line
// before the fault.
func advised(err error) string {
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, is := strings.CutPrefix(said, "line "); is {
		_, said, _ = strings.Cut(rest, ": ")
	}
	for _, known := range [...]struct{ part, advice string }{
		{"cannot start any token", "indent with spaces, not tabs, and put quotes around a text that begins with @, ` or %"},
		{"mapping values are not allowed", "indent the line as those beside it, and look for a missing or a second colon"},
		{"did not find expected key", "indent the line as those beside it"},
		{"could not find expected ':'", "write a name, a colon, a space and the value"},
		{"unexpected end of stream", "close the quotes that are opened here"},
		{"did not find expected ','", "close the bracket that is opened here"},
		{"expected node content", "close the bracket that is opened here"},
	} {
		if strings.Contains(said, known.part) {
			return said + ": " + known.advice
		}
	}
	return said
}

// brokenAt returns the first line that makes a document invalid YAML: the one after the longest valid
// beginning.
func brokenAt(document string) int {
	const patience = 4 << 20 // most bytes to parse
	ends := []int{0}
	for i := range len(document) {
		if document[i] == '\n' {
			ends = append(ends, i+1)
		}
	}
	parsed := 0
	for line := len(ends) - 1; line > 0 && parsed < patience; line-- {
		parsed += ends[line]
		if yaml.Unmarshal([]byte(document[:ends[line]]), new(yaml.Node)) == nil {
			return line + 1
		}
	}
	if parsed >= patience {
		return 0
	}
	return 1
}

// reading collects the values and faults of a document.
type reading struct {
	values map[string]*yaml.Node // by the paths of settings
	names  map[string][]string   // of the settings in each section; "" holds the sections
	faults Faults
}

// valuesOf returns the values that a mapping sets, and its faults.
func (c *Catalog) valuesOf(node *yaml.Node) ([]value, Faults) {
	r := reading{values: map[string]*yaml.Node{}, names: c.names}
	r.collect("", node)
	var values []value
	for _, entry := range c.entries {
		if node, set := r.values[entry.path]; set {
			values = append(values, value{entry, node})
		}
	}
	return values, r.faults
}

func (r *reading) wrong(path string, line int, message string) {
	r.faults = append(r.faults, Invalid{Field: path, Message: message, Line: line})
}

// collect notes the members of a section and of those below it.
func (r *reading) collect(section string, node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		r.wrong(section, node.Line, "is not a mapping of names to values")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		path := strings.TrimPrefix(section+"."+name.Value, ".")
		_, nested := r.names[path]
		nested = nested && section == ""
		switch first, twice := seen[name.Value]; {
		case !slices.Contains(r.names[section], name.Value):
			r.wrong(path, name.Line, r.unknown(section, name.Value))
		case hasAlias(value):
			r.wrong(path, name.Line, "uses an alias; write the value itself")
		case twice:
			r.wrong(path, name.Line, fmt.Sprintf("is set twice, first on line %d; keep one", first))
		case nested && value.Tag == "!!null":
		case nested:
			r.collect(path, value)
		case value.Tag == "!!null":
			r.wrong(path, name.Line, "has no value; leave it out for its default")
		default:
			r.values[path] = value
		}
		seen[name.Value] = name.Line
	}
}

// unknown describes an unknown name of a section, with a suggestion if a known name is similar.
func (r *reading) unknown(section, name string) string {
	known := r.names[section]
	said := "is unknown; known are " + strings.Join(known, ", ")
	if meant := Nearest(name, known); meant != "" {
		return said + ". Did you mean " + meant + "?"
	}
	for _, other := range r.names[""] {
		if other != section && slices.Contains(r.names[other], name) {
			return said + ". Did you mean " + name + " inside " + other + "?"
		}
	}
	return said
}

func hasAlias(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || slices.ContainsFunc(node.Content, hasAlias)
}

// Nearest returns the known name most similar to an unknown one; "" if no name is similar.
func Nearest(name string, known []string) string {
	plain := func(name string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune("-_ .", r) {
				return -1
			}
			return r
		}, strings.ToLower(name))
	}
	wanted := plain(name)
	if len(wanted) > 100 {
		return ""
	}
	best, nearest := len(wanted)/3+1, ""
	for _, candidate := range known {
		if steps := distance(wanted, plain(candidate)); steps < best {
			best, nearest = steps, candidate
		}
	}
	return nearest
}

// distance returns how many letters must be inserted, deleted, replaced or swapped with their neighbor to
// turn one text into the other (Damerau, CACM 7(3), 1964).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	var older []int
	for i := range len(a) {
		older, before, row = before, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(before[j]+cost, before[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// encoded returns a node as a document of YAML.
func encoded(node *yaml.Node) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return out.String(), nil
}
