package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Config is a whole pipeline: its modules in order, and their settings. People depend on its names in YAML
// and JSON.
type Config struct {
	// Modules run in this order.
	Modules []string

	parts []Settings // pointers to the settings of each module; the pointees are immutable
}

// Settings are the settings of one module: a struct whose fields have their config names as JSON and YAML
// tags. The struct itself has the methods; a Config holds a pointer to it.
type Settings interface {
	// ModuleName is the name of the settings' module.
	ModuleName() string
}

// consistent is implemented by settings with values that must suit each other.
type consistent interface {
	// Inconsistent returns a setting that conflicts with others, and an error text; "" if all are consistent.
	Inconsistent() (setting, message string)
}

// targeting is implemented by the settings of a module that compresses prompts.
type targeting interface {
	// Target returns the size in tokens above which a prompt with the given limit is compressed; 0 if it
	// never is.
	Target(limit int) int
}

// SettingsOf returns the module settings of type C; the zero value if absent.
func SettingsOf[C any](config Config) C {
	for _, part := range config.parts {
		if settings, is := any(part).(*C); is {
			return *settings
		}
	}
	var none C
	return none
}

// Change returns a module's settings in a config, for an immediate change. Copies of the config, and the one
// it was copied from, keep theirs.
func Change[C any](config *Config) *C {
	changed := new(C)
	settings, is := any(changed).(Settings)
	if !is {
		panic(fmt.Sprintf("%T has no settings of a module", changed))
	}
	parts := slices.Clone(config.parts)
	at := slices.IndexFunc(parts, func(part Settings) bool { _, is := any(part).(*C); return is })
	if at < 0 {
		parts = append(parts, settings)
		config.parts = parts
		return changed
	}
	*changed = SettingsOf[C](*config)
	parts[at], config.parts = settings, parts
	return changed
}

// Runs reports whether the config names a module.
func (c Config) Runs(name string) bool { return slices.Contains(c.Modules, name) }

// Target returns the size in tokens above which a prompt with the given limit is compressed; 0 if it never
// is.
func (c Config) Target(limit int) int {
	for _, part := range c.parts {
		if settings, is := part.(targeting); is && c.Runs(part.ModuleName()) {
			return settings.Target(limit)
		}
	}
	return 0
}

// of returns the settings of a module; nil if absent.
func (c Config) of(module string) Settings {
	for _, part := range c.parts {
		if part.ModuleName() == module {
			return part
		}
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (c Config) MarshalJSON() ([]byte, error) {
	modules, err := json.Marshal(c.Modules)
	if err != nil {
		return nil, fmt.Errorf("encode modules: %w", err)
	}
	out := append([]byte(`{"modules":`), modules...)
	for _, part := range c.parts {
		settings, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("encode settings of %s: %w", part.ModuleName(), err)
		}
		out = append(strconv.AppendQuote(append(out, ','), part.ModuleName()), ':')
		out = append(out, settings...)
	}
	return append(out, '}'), nil
}

// MarshalYAML implements yaml.Marshaler.
func (c Config) MarshalYAML() (any, error) {
	whole := &yaml.Node{Kind: yaml.MappingNode}
	modules, err := written(c.Modules)
	if err != nil {
		return nil, fmt.Errorf("write modules: %w", err)
	}
	put(whole, modulesPath, modules)
	for _, part := range c.parts {
		var settings yaml.Node
		if err := settings.Encode(part); err != nil {
			return nil, fmt.Errorf("write settings of %s: %w", part.ModuleName(), err)
		}
		put(whole, part.ModuleName(), &settings)
	}
	return whole, nil
}

// YAML returns the whole config in a form that can be saved and read back.
func (c Config) YAML() string {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(c); err != nil {
		return "# " + err.Error() + "\n" // only a field of a new type without a form in YAML
	}
	return out.String()
}

// Invalid is an invalid value in a config that a person can correct.
type Invalid struct {
	Field   string // path of the field: "ipc.targetUtilization"; "" for the whole document
	Message string // the value, the problem and the allowed values
	Line    int    // of the document, from 1; 0 if unknown
}

// Error implements error.
func (e Invalid) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}
