package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Rights limit the settings of an API key and of its requests. A workspace's own pipeline has no such limit,
// because anyone who can change it is entitled to decide. The zero value allows least.
type Rights struct {
	Scope string // the widest scope of memory; "" is the narrowest
}

// Within limits a choice of an API key to the furthest option that the rights of its people allow. The
// options go from the nearest to the furthest.
func (s Setting) Within(furthest func(Rights) string) Setting {
	s.access.furthest = furthest
	return s
}

// IsBounded reports whether rights limit the setting.
func (s *Setting) IsBounded() bool { return s.access.furthest != nil }

// Check returns an Invalid that names the first value of a layer beyond the rights, and the furthest allowed
// one; nil if all values are within them.
func (r Rights) Check(catalog *Catalog, layer Layer) error {
	read, err := catalog.Read(layer)
	if err != nil {
		return err
	}
	config, _, err := catalog.Resolve(read)
	if err != nil {
		return err
	}
	for _, value := range read.values {
		setting, _ := catalog.Setting(value.entry.path)
		if !setting.IsBounded() {
			continue
		}
		module, _, _ := strings.Cut(value.entry.path, ".")
		furthest, set := setting.access.furthest(r), setting.option(config.of(module))
		if setting.place(set) > setting.place(furthest) {
			return Invalid{Field: value.entry.path, Line: value.node.Line, Message: fmt.Sprintf(
				"%q goes further than the people behind this key may decide; set at most %s", set, furthest)}
		}
	}
	return nil
}

// Resolve is Catalog.Resolve with every value limited to the rights. A value beyond them becomes the furthest
// allowed one, or the workspace's own value if that goes further. For a module that the workspace does not
// run, only the rights count.
func (r Rights) Resolve(catalog *Catalog, workspace Config, layers ...Layer) (Config, Sources, error) {
	config, sources, err := catalog.Resolve(layers...)
	if err != nil {
		return Config{}, Sources{}, err
	}
	for i := range catalog.modules {
		name := catalog.modules[i].Name
		for _, setting := range catalog.modules[i].settings() {
			if !setting.IsBounded() {
				continue
			}
			most := setting.access.furthest(r)
			if own := setting.option(workspace.of(name)); workspace.Runs(name) && setting.place(own) > setting.place(most) {
				most = own
			}
			if setting.place(setting.option(config.of(name))) > setting.place(most) {
				setting.access.read(config.of(name), &yaml.Node{Kind: yaml.ScalarNode, Value: most})
			}
		}
	}
	return config, sources, nil
}

// option returns the value of a choice from its module's settings.
func (s *Setting) option(settings Settings) string {
	node, err := s.access.write(settings)
	if err != nil {
		return ""
	}
	return node.Value
}

// place returns a value's index among the options, which go from the nearest to the furthest; -1 if absent.
func (s *Setting) place(value string) int {
	return slices.IndexFunc(s.Options, func(option Option) bool { return option.Value == value })
}
