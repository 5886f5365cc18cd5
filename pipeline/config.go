package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Config is a whole pipeline: the modules in the order in which they run, and the settings
// of each. Its names in YAML and JSON are those people depend on.
type Config struct {
	// Modules run in this order.
	Modules []string

	parts []Settings // pointers to the settings of each module; never changed once they are here
}

// Settings are the settings of one module: a struct whose fields have the names of the
// config as tags of JSON and YAML. The methods are those of the struct; a Config holds a
// pointer to it.
type Settings interface {
	// ModuleName is the name of the module that has the settings.
	ModuleName() string
}

// consistent is implemented by settings of which one value must suit another.
type consistent interface {
	// Inconsistent returns a setting that does not suit the others, and what is wrong with
	// it; "" if all of them suit each other.
	Inconsistent() (setting, message string)
}

// targeting is implemented by the settings of a module that compresses prompts.
type targeting interface {
	// Target returns the size in tokens above which a prompt is compressed that may have
	// limit tokens; 0 if it never is.
	Target(limit int) int
}

// SettingsOf returns the settings of the module whose settings have the type C; the zero
// value if the config has none.
func SettingsOf[C any](config Config) C {
	for _, part := range config.parts {
		if settings, is := any(part).(*C); is {
			return *settings
		}
	}
	var none C
	return none
}

// Change returns the settings of a module in a config, to be changed at once. Other configs
// that the config was copied to or from stay as they are.
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

// Target returns the size in tokens above which a prompt is compressed that may have limit
// tokens; 0 if it never is.
func (c Config) Target(limit int) int {
	for _, part := range c.parts {
		if settings, is := part.(targeting); is && c.Runs(part.ModuleName()) {
			return settings.Target(limit)
		}
	}
	return 0
}

// of returns the settings of a module; nil if the config has none.
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

// YAML returns the whole config as it can be saved and read again.
func (c Config) YAML() string {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(c); err != nil {
		return "# " + err.Error() + "\n" // only a field of a new type without a form in YAML
	}
	return out.String()
}

// Invalid is a value in a config that someone can mend.
type Invalid struct {
	Field   string // path of the field: "ipc.targetUtilization"; "" for the whole document
	Message string // the value, what is wrong with it and what is allowed
	Line    int    // of the document, from 1; 0 if it has no place there
}

// Error implements error.
func (e Invalid) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}
