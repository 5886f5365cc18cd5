package tuning

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
)

// values are the page's settings as its form has them.
type values struct {
	Order []string          // every module of the product, as the page lists them
	On    map[string]bool   // those that run
	Set   map[string]string // by the settings' paths
}

// Names of the form's inputs other than settings.
const (
	orderName  = "order"   // once for each module
	switchName = "module." // and the module
	doName     = "do"      // a button's action besides saving; see act
)

// valuesOf returns a pipeline's settings. An error is a bug of this program.
func valuesOf(config pipeline.Config) (values, error) {
	encoded, err := json.Marshal(config)
	if err != nil {
		return values{}, fmt.Errorf("encode pipeline: %w", err)
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &whole); err != nil {
		return values{}, fmt.Errorf("read pipeline: %w", err)
	}
	v := values{Order: orderOf(config.Modules), On: map[string]bool{}, Set: map[string]string{}}
	for _, name := range config.Modules {
		v.On[name] = true
	}
	sections := map[string]map[string]any{}
	for _, name := range modules.Catalog().Names() {
		var section map[string]any
		if err := json.Unmarshal(whole[name], &section); err != nil {
			return values{}, fmt.Errorf("settings of %s: %w", name, err)
		}
		sections[name] = section
	}
	for _, s := range settings() {
		value := sections[s.Module][s.Name]
		if parent, member, nested := strings.Cut(s.Name, "."); nested {
			members, _ := sections[s.Module][parent].(map[string]any) // false if it is off
			value = members[member]
		}
		v.Set[s.path()] = s.text(value)
	}
	for _, s := range settings() {
		if s.First != "" && v.Set[s.parent()] == "false" {
			v.Set[s.path()] = s.First
		}
	}
	return v, nil
}

// orderOf returns all modules of the product: the running ones in their order, each of the others after its
// usual predecessor.
func orderOf(running []string) []string {
	order, before := slices.Clone(running), -1
	for _, name := range modules.Catalog().Names() {
		if at := slices.Index(order, name); at >= 0 {
			before = at
			continue
		}
		before++
		order = slices.Insert(order, before, name)
	}
	return order
}

// clone returns values that share no memory with v.
func (v values) clone() values {
	return values{Order: slices.Clone(v.Order), On: maps.Clone(v.On), Set: maps.Clone(v.Set)}
}

// typed returns the settings with a form's values applied.
func (v values) typed(form url.Values) values {
	next := v.clone()
	if order := form[orderName]; isOrder(order) {
		next.Order = order
	}
	last := func(name string) (string, bool) { // a checked switch follows its unchecked value
		sent := form[name]
		if len(sent) == 0 {
			return "", false
		}
		return strings.TrimSpace(sent[len(sent)-1]), true
	}
	for _, name := range next.Order {
		if text, sent := last(switchName + name); sent {
			next.On[name] = text == "true"
		}
	}
	for _, s := range settings() {
		if text, sent := last(s.path()); sent {
			next.Set[s.path()] = text
		}
	}
	return next
}

// isOrder reports whether a list has each module of the product exactly once.
func isOrder(order []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(order)), slices.Sorted(slices.Values(modules.Catalog().Names())))
}

// running returns the running modules in their order.
func (v values) running() []string {
	return slices.DeleteFunc(slices.Clone(v.Order), func(name string) bool { return !v.On[name] })
}

// modules returns the modules to save; empty for the default ones.
func (v values) modules(base []string) string {
	running := v.running()
	switch {
	case slices.Equal(running, base):
		return ""
	case len(running) == 0:
		return "none"
	default:
		return strings.Join(running, ",")
	}
}

// difference is a setting with two values.
type difference struct {
	Name         string // its path, a module, or "order"
	Saved, Typed string // in a sentence's format
}

// differences returns the settings that differ.
func differences(saved, typed values) []difference {
	var found []difference
	if a, b := sharedOrder(saved, typed), sharedOrder(typed, saved); !slices.Equal(a, b) {
		found = append(found, difference{orderName, strings.Join(a, ", "), strings.Join(b, ", ")})
	}
	for _, name := range modules.Catalog().Names() {
		if saved.On[name] != typed.On[name] {
			found = append(found, difference{switchName + name, onOff(saved.On[name]), onOff(typed.On[name])})
		}
	}
	for _, s := range settings() {
		if parent := s.parent(); parent != "" && typed.Set[parent] != "true" {
			continue // goes with its parent
		}
		if a, b := saved.Set[s.path()], typed.Set[s.path()]; !s.isSame(a, b) {
			found = append(found, difference{s.path(), s.said(a, brief), s.said(b, brief)})
		}
	}
	return found
}

// sharedOrder returns the modules that run in both, in the order of the first.
func sharedOrder(of, other values) []string {
	return slices.DeleteFunc(of.running(), func(name string) bool { return !other.On[name] })
}

// taking returns the values with one difference taken from others.
func (v values) taking(name string, others values) values {
	next := v.clone()
	if name == orderName {
		next.Order = slices.Clone(others.Order)
		return next
	}
	if module, is := strings.CutPrefix(name, switchName); is {
		next.On[module] = others.On[module]
		return next
	}
	for _, s := range settings() {
		if s.parent() == name && v.Set[name] != "true" {
			next.Set[s.path()] = others.Set[s.path()] // members have no difference of their own
		}
	}
	next.Set[name] = others.Set[name]
	return next
}

// showVerb is the verb of a button that shows a module's settings. act ignores it.
const showVerb = "show:"

// act performs a button's action besides saving: "up:ipc", "down:ipc", "default:ipc.compressTo",
// "preset:aggressive". It ignores unknown actions.
func (v values) act(do string, defaults values) values {
	next := v.clone()
	verb, name, _ := strings.Cut(do, ":")
	running := v.running()
	at := slices.Index(running, name)
	switch {
	case verb == "default":
		if _, known := settingOf(name); known {
			next.Set[name] = defaults.Set[name]
		}
	case verb == "preset":
		if preset, known := presetNamed(name); known {
			return v.with(preset).following(v)
		}
	case verb == "up" && at > 0:
		next.Order = swapped(v.Order, running[at-1], name)
	case verb == "down" && at >= 0 && at < len(running)-1:
		next.Order = swapped(v.Order, name, running[at+1])
	}
	return next
}

// swapped returns the order with second moved from after first to before it.
func swapped(order []string, first, second string) []string {
	rest := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return name == second })
	return slices.Insert(rest, slices.Index(rest, first), second)
}
