package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// modulesPath is the setting for which modules run.
const modulesPath = "modules"

// Catalog is the list of the product's modules. It reads, checks and writes configs according to their
// descriptions. It is immutable and safe for concurrent use.
type Catalog struct {
	modules []Description
	entries []entry             // in the order of a written config
	names   map[string][]string // of the settings in each section; "" holds the sections
}

// NewCatalog returns the catalog of the modules, in the order in which they usually run. It panics if a
// description does not match the module's settings exactly.
func NewCatalog(modules ...Description) *Catalog {
	c := &Catalog{modules: modules, names: map[string][]string{"": {modulesPath}}}
	c.entries = append(c.entries, entry{path: modulesPath, access: c.list()})
	for i := range modules {
		described := map[string]Setting{}
		for _, setting := range modules[i].settings() {
			described[setting.Name] = setting
		}
		c.names[""] = append(c.names[""], modules[i].Name)
		for _, name := range namesOf(modules[i].Defaults()) {
			setting, is := described[name]
			if !is {
				panic(modules[i].Name + " does not describe its setting " + name)
			}
			delete(described, name)
			c.names[modules[i].Name] = append(c.names[modules[i].Name], name)
			c.entries = append(c.entries, entry{path: modules[i].Name + "." + name, access: within(modules[i].Name, setting.access)})
		}
		for name := range described {
			panic(modules[i].Name + " describes " + name + ", which it does not have")
		}
	}
	return c
}

// namesOf returns the names of settings in the order of their fields.
func namesOf(settings Settings) []string {
	var fields yaml.Node
	if err := fields.Encode(settings); err != nil {
		panic(fmt.Sprintf("settings of %s: %v", settings.ModuleName(), err))
	}
	var names []string
	for i := 0; i < len(fields.Content); i += 2 {
		names = append(names, fields.Content[i].Value)
	}
	return names
}

// entry is one value of a config.
type entry struct {
	path   string // "ipc.targetUtilization"
	access configAccess
}

// configAccess reads, writes and checks a value of a config.
type configAccess struct {
	read  func(*Config, *yaml.Node) (wrong string)
	write func(*Config) (*yaml.Node, error)
	check func(*Config) (wrong string)
}

// within returns the access to a setting of a module in a whole config.
func within(module string, setting access) configAccess {
	return configAccess{
		read:  func(config *Config, node *yaml.Node) string { return setting.read(config.of(module), node) },
		write: func(config *Config) (*yaml.Node, error) { return setting.write(config.of(module)) },
		check: func(config *Config) string { return setting.check(config.of(module)) },
	}
}

// list returns the access to the setting modules.
func (c *Catalog) list() configAccess {
	return configAccess{
		read: func(config *Config, node *yaml.Node) string {
			names, wrong := c.listed(node)
			if wrong == "" {
				config.Modules = names
			}
			return wrong
		},
		write: func(config *Config) (*yaml.Node, error) { return written(config.Modules) },
		check: func(config *Config) string { return c.checkModules(config.Modules) },
	}
}

// listed returns the modules that a node names, as a list or separated by commas.
func (c *Catalog) listed(node *yaml.Node) (names []string, wrong string) {
	if node.Kind == yaml.ScalarNode {
		return c.split(node.Value)
	}
	if err := node.Decode(&names); err != nil {
		return nil, explain(node, err)
	}
	return names, c.checkModules(names)
}

// Modules returns the modules of the product, in the order in which they usually run.
func (c *Catalog) Modules() []Description { return slices.Clone(c.modules) }

// Module returns a module's description; known is false if the module does not exist.
func (c *Catalog) Module(name string) (module Description, known bool) {
	at := slices.IndexFunc(c.modules, func(m Description) bool { return m.Name == name })
	if at < 0 {
		return Description{}, false
	}
	return c.modules[at], true
}

// Names returns the names of the modules.
func (c *Catalog) Names() []string {
	names := make([]string, len(c.modules))
	for i := range c.modules {
		names[i] = c.modules[i].Name
	}
	return names
}

// Presets returns the named sets of settings to start from.
func (c *Catalog) Presets() []Preset {
	var presets []Preset
	for i := range c.modules {
		presets = append(presets, c.modules[i].Presets...)
	}
	return presets
}

// Setting returns a setting by its path, which may be that of a member: "ipc.llmCompression.model".
func (c *Catalog) Setting(path string) (setting Setting, known bool) {
	module, rest, _ := strings.Cut(path, ".")
	name, member, isMember := strings.Cut(rest, ".")
	described, _ := c.Module(module)
	setting, known = find(described.settings(), name)
	if known && isMember {
		return find(setting.Members, member)
	}
	return setting, known
}

func find(settings []Setting, name string) (setting Setting, known bool) {
	for i := range settings {
		if settings[i].Name == name {
			return settings[i], true
		}
	}
	return Setting{}, false
}

// Default returns the pipeline of a workspace without settings of its own.
func (c *Catalog) Default() Config {
	config := Config{Modules: make([]string, 0, len(c.modules)), parts: make([]Settings, len(c.modules))}
	for i := range c.modules {
		config.parts[i] = c.modules[i].Defaults()
		if c.modules[i].IsStandard {
			config.Modules = append(config.Modules, c.modules[i].Name)
		}
	}
	return config
}

// Decode reads a config from its JSON, without validating it. Missing values have their defaults.
func (c *Catalog) Decode(encoded []byte) (Config, error) {
	var sections map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &sections); err != nil {
		return Config{}, fmt.Errorf("read config: %w", err)
	}
	config := c.Default()
	if modules, has := sections[modulesPath]; has {
		config.Modules = nil
		if err := json.Unmarshal(modules, &config.Modules); err != nil {
			return Config{}, fmt.Errorf("read modules: %w", err)
		}
	}
	for _, part := range config.parts {
		if section, has := sections[part.ModuleName()]; has {
			if err := json.Unmarshal(section, part); err != nil {
				return Config{}, fmt.Errorf("read settings of %s: %w", part.ModuleName(), err)
			}
		}
	}
	return config, nil
}

// ParseModules reads a list of modules separated by commas; "none" means an empty list. The error is an
// Invalid.
func (c *Catalog) ParseModules(list string) ([]string, error) {
	names, wrong := c.split(list)
	if wrong != "" {
		return nil, Invalid{Field: modulesPath, Message: wrong}
	}
	return names, nil
}

func (c *Catalog) split(list string) (names []string, wrong string) {
	if strings.TrimSpace(list) == "none" {
		return []string{}, ""
	}
	names = strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	if wrong := c.checkModules(names); wrong != "" {
		return nil, wrong
	}
	return names, ""
}

func (c *Catalog) checkModules(names []string) string {
	known := c.names[""][1:]
	for i, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Sprintf("%q is no module; known are %s, and none for no module", name, strings.Join(known, ", "))
		}
		if slices.Contains(names[:i], name) {
			return name + " is named twice; a module runs once"
		}
	}
	return ""
}

// Validate checks every value of a config. The error is an Invalid.
func (c *Catalog) Validate(config Config) error {
	for _, entry := range c.entries {
		if wrong := entry.access.check(&config); wrong != "" {
			return Invalid{Field: entry.path, Message: wrong}
		}
	}
	for _, part := range config.parts {
		if settings, is := part.(consistent); is {
			if setting, wrong := settings.Inconsistent(); wrong != "" {
				return Invalid{Field: part.ModuleName() + "." + setting, Message: wrong}
			}
		}
	}
	return nil
}
