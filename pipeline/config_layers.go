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

// Source is where a value of a config comes from.
type Source string

// The sources of values, lowest first.
const (
	FromDefault   Source = "default"
	FromWorkspace Source = "workspace"
	FromAPIKey    Source = "api_key"
	FromHeader    Source = "header"
)

// Sources holds the source of each value by its path ("ipc.targetUtilization"). Its JSON lists all values.
type Sources struct {
	set     map[string]Source // only sources other than FromDefault
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

// Layer holds the settings from one source.
type Layer struct {
	Source  Source
	Modules string // separated by commas; "none" for an empty list, "" if not set here
	YAML    string // settings in YAML or JSON; others are not set here

	values []value // of YAML, after Read
	isRead bool
}

// WorkspaceLayer returns the saved settings of a workspace as a layer.
func WorkspaceLayer(modules, yaml string) Layer {
	return Layer{Source: FromWorkspace, Modules: modules, YAML: yaml}
}

// value is a value in a layer.
type value struct {
	entry entry
	node  *yaml.Node
}

// Read returns a layer with its YAML parsed, so that Resolve need not parse it again. The error is an
// Invalid. Resolve checks the values.
func (c *Catalog) Read(layer Layer) (Layer, error) {
	read, faults := c.read(layer)
	if len(faults) > 0 {
		return Layer{}, faults[0]
	}
	return read, nil
}

// Resolve merges the layers, lowest first, above the defaults. It returns the config and the source of each
// value. The error is an Invalid that names the invalid value.
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

// apply sets a layer's values in an unshared config, checks it and returns the faults. Invalid values are not
// set.
func (c *Catalog) apply(layer Layer, config *Config, sources Sources) Faults {
	var faults Faults
	lines := map[string]int{} // of the layer's values
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
		if line, set := lines[path]; set && wrong != "" { // a value of a layer below isn't this layer's fault
			faults = append(faults, Invalid{Field: path, Message: wrong, Line: line})
		}
	}
	return faults
}

// Parse reads a whole pipeline from YAML or JSON. Missing values have their defaults. The error is an Invalid
// that names the invalid value.
func (c *Catalog) Parse(document []byte) (Config, error) {
	config, _, err := c.Resolve(Layer{YAML: string(document)})
	return config, err
}

// unread returns an error text for a value that the parser could not read, from the parser's message said.
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
