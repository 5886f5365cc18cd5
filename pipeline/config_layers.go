package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Source says where a value of a config comes from.
type Source string

// The sources of values, lowest first.
const (
	FromDefault   Source = "default"
	FromWorkspace Source = "workspace"
	FromAPIKey    Source = "api_key"
	FromHeader    Source = "header"
)

// Sources names the sources of values by their paths ("ipc.targetUtilization"). As JSON it
// names all of them.
type Sources struct {
	set     map[string]Source // where it is not FromDefault
	catalog *Catalog
}

// Of returns the source of the value at path.
func (s Sources) Of(path string) Source {
	if source, set := s.set[path]; set {
		return source
	}
	return FromDefault
}

// MarshalJSON implements json.Marshaler.
func (s Sources) MarshalJSON() ([]byte, error) {
	all := map[string]Source{}
	for _, entry := range s.catalog.entries {
		all[entry.path] = s.Of(entry.path)
	}
	return json.Marshal(all)
}

// Layer is what one source sets of a pipeline.
type Layer struct {
	Source  Source
	Modules string // separated by commas, "none" for none; empty: not set here
	YAML    string // settings in YAML or JSON; what it leaves out is not set here

	values []value // of YAML, once Read
	isRead bool
}

// WorkspaceLayer returns what a workspace has saved as a layer.
func WorkspaceLayer(modules, yaml string) Layer {
	return Layer{Source: FromWorkspace, Modules: modules, YAML: yaml}
}

// value is a value that a layer sets.
type value struct {
	entry entry
	node  *yaml.Node
}

// Read returns a layer with its YAML read, so that Resolve need not do it
// again. The error is an Invalid; values are checked by Resolve.
func (c *Catalog) Read(layer Layer) (Layer, error) {
	read, faults := c.read(layer)
	if len(faults) > 0 {
		return Layer{}, faults[0]
	}
	return read, nil
}

// Resolve returns the pipeline that the layers make, lowest first, above the
// defaults, and where each value comes from. The error is an Invalid that names
// the value at fault.
func (c *Catalog) Resolve(layers ...Layer) (Config, Sources, error) {
	config, sources := c.Default(), Sources{set: map[string]Source{}, catalog: c}
	for _, layer := range layers {
		read, err := c.Read(layer)
		if err != nil {
			return Config{}, Sources{}, err
		}
		if faults := c.apply(read, &config, sources); len(faults) > 0 {
			return Config{}, Sources{}, faults[0]
		}
	}
	return config, sources, nil
}

// apply sets what a layer sets in a config that no one else has, checks it and returns what
// is wrong with it. What is wrong is not set.
func (c *Catalog) apply(layer Layer, config *Config, sources Sources) Faults {
	var faults Faults
	lines := map[string]int{} // of what the layer sets
	for _, value := range layer.values {
		path := value.entry.path
		if wrong := value.entry.access.read(config, value.node); wrong != "" {
			faults = append(faults, Invalid{Field: path, Message: wrong, Line: value.node.Line})
			continue
		}
		sources.set[path], lines[path] = layer.Source, value.node.Line
	}
	if layer.Modules != "" {
		modules, wrong := c.split(layer.Modules)
		if wrong != "" {
			return append(faults, Invalid{Field: modulesPath, Message: wrong})
		}
		config.Modules, sources.set[modulesPath] = modules, layer.Source
	}
	for _, part := range config.parts {
		settings, is := part.(consistent)
		if !is {
			continue
		}
		setting, wrong := settings.Inconsistent()
		path := part.ModuleName() + "." + setting
		if line, set := lines[path]; set && wrong != "" { // what a layer below set is not the fault of this one
			faults = append(faults, Invalid{Field: path, Message: wrong, Line: line})
		}
	}
	return faults
}

// Parse reads a whole pipeline from YAML or JSON; what it leaves out has its
// default. The error is an Invalid that names the value at fault.
func (c *Catalog) Parse(document []byte) (Config, error) {
	config, _, err := c.Resolve(Layer{YAML: string(document)})
	return config, err
}

// unread says what is wrong with a value that the parser could not read, by what it says.
func unread(node *yaml.Node, said string) string {
	// "line 2: cannot unmarshal !!str `high` into float64"
	names := map[string]string{"float64": "a number", "int": "a whole number", "bool": "true or false", "string": "a text", "[]int": "a list of whole numbers", "[]string": "a list of texts"}
	match := regexp.MustCompile(`cannot unmarshal .* into (\S+)$`).FindStringSubmatch(said)
	if match == nil {
		return regexp.MustCompile(`^line \d+: `).ReplaceAllString(said, "")
	}
	wanted, named := names[match[1]]
	if !named {
		wanted = "one of " + strings.Join(slices.Sorted(maps.Values(names)), ", ")
	}
	if node.Kind != yaml.ScalarNode {
		return "must be " + wanted
	}
	return fmt.Sprintf("%q must be %s", node.Value, wanted)
}
