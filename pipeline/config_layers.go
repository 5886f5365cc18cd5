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
	read, faults := l.read()
	if len(faults) > 0 {
		return Layer{}, faults[0]
	}
	return read, nil
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
		if faults := read.apply(&config, sources); len(faults) > 0 {
			return Config{}, nil, faults[0]
		}
	}
	return config, sources, nil
}

// apply sets what the layer sets, checks it and returns what is wrong with it.
func (l Layer) apply(config *Config, sources Sources) Faults {
	var faults Faults
	goal := 0 // the line of compressTo
	for _, value := range l.values {
		path := value.setting.path
		var wrong string
		before := *config
		if err := value.setting.read(config, value.node); err != nil {
			wrong = explain(value.node, err)
		} else {
			wrong = value.setting.check(config)
		}
		if wrong != "" {
			*config = before
			faults = append(faults, Invalid{Field: path, Message: wrong, Line: value.node.Line})
			continue
		}
		sources[path] = l.Source
		if path == "ipc.compressTo" {
			goal = value.node.Line
		}
	}
	if l.Modules != "" {
		modules, err := ParseModules(l.Modules)
		if invalid, is := errors.AsType[Invalid](err); is {
			return append(faults, invalid)
		}
		config.Modules, sources["modules"] = modules, l.Source
	}
	if wrong := checkWatermarks(config.IPC); goal > 0 && wrong != "" {
		faults = append(faults, Invalid{Field: "ipc.compressTo", Message: wrong, Line: goal})
	}
	return faults
}

// Validate checks every value. The error is an Invalid.
func (c Config) Validate() error {
	for _, setting := range settings() {
		if message := setting.check(&c); message != "" {
			return Invalid{Field: setting.path, Message: message}
		}
	}
	if message := checkWatermarks(c.IPC); message != "" {
		return Invalid{Field: "ipc.compressTo", Message: message}
	}
	return nil
}

// checkWatermarks refuses a compressTo that lies above the target for the person who set
// it. A lower target from a layer above lowers the goal instead; see Goal.
func checkWatermarks(ipc IPCConfig) string {
	if ipc.CompressTo < ipc.TargetUtilization {
		return ""
	}
	return fmt.Sprintf("%v is not below targetUtilization, which is %v", ipc.CompressTo, ipc.TargetUtilization)
}

// ParseConfig reads a whole pipeline from YAML or JSON; what it leaves out has its
// default. The error is an Invalid that names the value at fault.
func ParseConfig(document []byte) (Config, error) {
	config, _, err := Resolve(Layer{YAML: string(document)})
	return config, err
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
		return regexp.MustCompile(`^line \d+: `).ReplaceAllString(kinds.Errors[0], "")
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
