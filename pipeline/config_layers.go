package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxYAML bounds the YAML of a layer, in bytes.
const maxYAML = 64 << 10

// Source says where a value of a config comes from.
type Source string

// The sources of values, lowest first.
const (
	FromDefault   Source = "default"
	FromWorkspace Source = "workspace"
	FromAPIKey    Source = "api_key"
	FromHeader    Source = "header"
)

// Sources names the sources of values by their paths ("ipc.targetUtilization");
// one that is missing has its default. As JSON it names all of them.
type Sources map[string]Source

// Of returns the source of the value at path.
func (s Sources) Of(path string) Source {
	if source, set := s[path]; set {
		return source
	}
	return FromDefault
}

// MarshalJSON implements json.Marshaler.
func (s Sources) MarshalJSON() ([]byte, error) {
	all := map[string]Source{}
	for _, setting := range settings() {
		all[setting.path] = s.Of(setting.path)
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

// value is a value that a layer sets.
type value struct {
	setting setting
	node    *yaml.Node
}

// Read returns the layer with its YAML read, so that Resolve need not do it
// again. The error is an Invalid; values are checked by Resolve.
func (l Layer) Read() (Layer, error) {
	if l.isRead || l.YAML == "" {
		return l, nil
	}
	nodes, err := readNodes(l.YAML)
	if err != nil {
		return Layer{}, err
	}
	for _, setting := range settings() {
		if node, set := nodes[setting.path]; set {
			l.values = append(l.values, value{setting, node})
		}
	}
	l.isRead = true
	return l, nil
}

// Resolve returns the pipeline that the layers make, lowest first, above the
// defaults, and where each value comes from. The error is an Invalid that names
// the value at fault.
func Resolve(layers ...Layer) (Config, Sources, error) {
	config, sources := DefaultConfig(), Sources{}
	for _, layer := range layers {
		read, err := layer.Read()
		if err != nil {
			return Config{}, nil, err
		}
		if err := read.apply(&config, sources); err != nil {
			return Config{}, nil, err
		}
	}
	return config, sources, nil
}

// apply sets what the layer sets and checks it.
func (l Layer) apply(config *Config, sources Sources) error {
	isGoalSet := false
	for _, value := range l.values {
		path := value.setting.path
		if err := value.setting.read(config, value.node); err != nil {
			return Invalid{Field: path, Message: explain(value.node, err)}
		}
		if message := value.setting.check(config); message != "" {
			return Invalid{Field: path, Message: message}
		}
		sources[path] = l.Source
		isGoalSet = isGoalSet || path == "ipc.compressTo"
	}
	if l.Modules != "" {
		modules, err := ParseModules(l.Modules)
		if err != nil {
			return err
		}
		config.Modules, sources["modules"] = modules, l.Source
	}
	if isGoalSet {
		return checkWatermarks(config.IPC)
	}
	return nil
}

// Validate checks every value. The error is an Invalid.
func (c Config) Validate() error {
	for _, setting := range settings() {
		if message := setting.check(&c); message != "" {
			return Invalid{Field: setting.path, Message: message}
		}
	}
	return checkWatermarks(c.IPC)
}

// checkWatermarks refuses a compressTo that lies above the target for whoever set
// it. A lower target from a layer above lowers the goal instead; see Goal.
func checkWatermarks(ipc IPCConfig) error {
	if ipc.CompressTo < ipc.TargetUtilization {
		return nil
	}
	return Invalid{Field: "ipc.compressTo", Message: fmt.Sprintf("%v is not below targetUtilization, which is %v", ipc.CompressTo, ipc.TargetUtilization)}
}

// ParseConfig reads a whole pipeline from YAML or JSON; what it leaves out has its
// default. The error is an Invalid that names the value at fault.
func ParseConfig(document []byte) (Config, error) {
	config, _, err := Resolve(Layer{YAML: string(document)})
	return config, err
}

// readNodes returns the values that a document sets by their paths.
func readNodes(document string) (map[string]*yaml.Node, error) {
	values := map[string]*yaml.Node{}
	if len(document) > maxYAML {
		return nil, Invalid{Message: fmt.Sprintf("the config has %d bytes; allowed are %d", len(document), maxYAML)}
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(document), &root); err != nil {
		return nil, Invalid{Message: "the config is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(root.Content) == 0 {
		return values, nil // comments only
	}
	if err := collect(values, "", root.Content[0], sections()); err != nil {
		return nil, err
	}
	return values, nil
}

// sections returns the names of all settings by their section: "" holds the
// sections themselves.
func sections() map[string][]string {
	names := map[string][]string{}
	for _, setting := range settings() {
		section, name, nested := strings.Cut(setting.path, ".")
		if !nested {
			names[""] = append(names[""], section)
			continue
		}
		if len(names[section]) == 0 {
			names[""] = append(names[""], section)
		}
		names[section] = append(names[section], name)
	}
	return names
}

// collect notes the members of a section and of those below it.
func collect(values map[string]*yaml.Node, section string, node *yaml.Node, sections map[string][]string) error {
	if node.Kind != yaml.MappingNode {
		return Invalid{Field: section, Message: "is not a mapping of names to values"}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i].Value, node.Content[i+1]
		path := name
		if section != "" {
			path = section + "." + name
		}
		if !slices.Contains(sections[section], name) {
			return Invalid{Field: path, Message: "is unknown; known are " + strings.Join(sections[section], ", ")}
		}
		if hasAlias(value) {
			return Invalid{Field: path, Message: "uses an alias; write the value itself"}
		}
		if _, nested := sections[path]; nested && section == "" {
			if value.Tag == "!!null" {
				continue
			}
			if err := collect(values, path, value, sections); err != nil {
				return err
			}
			continue
		}
		if _, twice := values[path]; twice {
			return Invalid{Field: path, Message: "is set twice"}
		}
		if value.Tag == "!!null" {
			return Invalid{Field: path, Message: "has no value; leave it out for its default"}
		}
		values[path] = value
	}
	return nil
}

func hasAlias(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || slices.ContainsFunc(node.Content, hasAlias)
}

// explain says what is wrong with a value that could not be read.
func explain(node *yaml.Node, err error) string {
	var kinds *yaml.TypeError
	if !errors.As(err, &kinds) || len(kinds.Errors) == 0 {
		return err.Error()
	}
	// "line 2: cannot unmarshal !!str `high` into float64"
	names := map[string]string{"float64": "a number", "int": "a whole number", "bool": "true or false", "string": "a text", "[]int": "a list of whole numbers", "[]string": "a list of texts"}
	match := regexp.MustCompile(`cannot unmarshal .* into (\S+)$`).FindStringSubmatch(kinds.Errors[0])
	if match == nil {
		return kinds.Errors[0]
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
