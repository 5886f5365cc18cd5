package tuning

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
)

// section is the module whose settings the page shows.
const section = "ipc"

// values are the settings of the page as they are written in its form.
type values struct {
	Enabled           bool // ipc runs
	TargetUtilization string
	CompressTo        string
	PreserveLastTurns string
	PreserveTokens    string
	PreserveSystem    bool
	DeepestLevel      string

	minClear float64 // share that an epoch frees at least; not on the page
}

// valuesOf returns the settings of a pipeline.
func valuesOf(config pipeline.Config) values {
	return values{
		Enabled:           slices.Contains(config.Modules, section),
		TargetUtilization: strconv.FormatFloat(config.IPC.TargetUtilization, 'f', 2, 64),
		CompressTo:        strconv.FormatFloat(config.IPC.CompressTo, 'f', 2, 64),
		PreserveLastTurns: strconv.Itoa(config.IPC.PreserveLastTurns),
		PreserveTokens:    strconv.Itoa(config.IPC.PreserveTokens),
		PreserveSystem:    config.IPC.PreserveSystem,
		DeepestLevel:      strconv.Itoa(config.IPC.DeepestLevel),
		minClear:          config.IPC.MinClear,
	}
}

// typedValues returns the settings that a form holds.
func typedValues(c echo.Context) values {
	text := func(name string) string { return strings.TrimSpace(c.FormValue(name)) }
	return values{
		Enabled:           c.FormValue("module.ipc") != "",
		TargetUtilization: text("ipc.targetUtilization"),
		CompressTo:        text("ipc.compressTo"),
		PreserveLastTurns: text("ipc.preserveLastTurns"),
		PreserveTokens:    text("ipc.preserveTokens"),
		PreserveSystem:    c.FormValue("ipc.preserveSystem") != "",
		DeepestLevel:      text("ipc.deepestLevel"),
	}
}

// shownValues returns the two watermarks as the form showed them before anything
// was typed, and saved ones in place of those that it does not tell.
func shownValues(c echo.Context, saved values) values {
	shown := saved
	shown.TargetUtilization = cmp.Or(c.FormValue("shown.targetUtilization"), saved.TargetUtilization)
	shown.CompressTo = cmp.Or(c.FormValue("shown.compressTo"), saved.CompressTo)
	return shown
}

// following returns the values with CompressTo lowered along with a target that
// was changed, so that an epoch has something to free. A CompressTo that was typed
// stays as it is: the pipeline refuses it where it is not below the target.
func (v values) following(shown values) values {
	target, err := strconv.ParseFloat(v.TargetUtilization, 64)
	goal, goalErr := strconv.ParseFloat(v.CompressTo, 64)
	switch {
	case err != nil || goalErr != nil, scalar(v.CompressTo) != scalar(shown.CompressTo):
		return v
	case scalar(v.TargetUtilization) == scalar(shown.TargetUtilization) && goal < target:
		return v
	}
	if highest := max(target-shown.minClear, target/2); goal > highest {
		v.CompressTo = strconv.FormatFloat(highest, 'f', 2, 64)
	}
	return v
}

// setting is a value of the page by its name in the pipeline config.
type setting struct{ Name, Value string }

// settings returns the values in the order of the page.
func (v values) settings() []setting {
	return []setting{
		{"targetUtilization", v.TargetUtilization}, {"compressTo", v.CompressTo}, {"preserveLastTurns", v.PreserveLastTurns},
		{"preserveTokens", v.PreserveTokens}, {"preserveSystem", strconv.FormatBool(v.PreserveSystem)}, {"deepestLevel", v.DeepestLevel},
	}
}

// difference is a setting with two values.
type difference struct{ Name, Saved, Typed string }

// differences returns the settings that are not the same.
func differences(saved, typed values) []difference {
	var found []difference
	if saved.Enabled != typed.Enabled {
		found = append(found, difference{section, onOff(saved.Enabled), onOff(typed.Enabled)})
	}
	typedSettings := typed.settings()
	for i, setting := range saved.settings() {
		if setting.Value != typedSettings[i].Value {
			found = append(found, difference{setting.Name, setting.Value, typedSettings[i].Value})
		}
	}
	return found
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// modules returns the modules to save: those of now with ipc switched as it is
// typed; empty if they are the default ones.
func (v values) modules(now, base []string) string {
	next := slices.Clone(now)
	switch {
	case v.Enabled && !slices.Contains(next, section):
		next = append([]string{section}, next...)
	case !v.Enabled:
		next = slices.DeleteFunc(next, func(name string) bool { return name == section })
	}
	switch {
	case slices.Equal(next, base):
		return ""
	case len(next) == 0:
		return "none"
	default:
		return strings.Join(next, ",")
	}
}

// yaml returns the saved settings with the typed ones in place of theirs; those
// that are the default are left out. The error is a pipeline.Invalid.
func (v values) yaml(saved string, base pipeline.Config) (string, error) {
	document := map[string]map[string]any{}
	whole := map[string]any{}
	if err := yaml.Unmarshal([]byte(saved), &whole); err != nil {
		return "", fmt.Errorf("saved settings: %w", err)
	}
	for name, member := range whole {
		if members, is := member.(map[string]any); is {
			document[name] = members
		}
	}
	ipc := document[section]
	if ipc == nil {
		ipc = map[string]any{}
	}
	defaults := valuesOf(base).settings()
	for i, setting := range v.settings() {
		delete(ipc, setting.Name)
		if setting.Value == "" {
			return "", pipeline.Invalid{Field: section + "." + setting.Name, Message: "is empty"}
		}
		value := scalar(setting.Value)
		if value != scalar(defaults[i].Value) {
			ipc[setting.Name] = value
		}
	}
	document[section] = ipc
	if len(ipc) == 0 {
		delete(document, section)
	}
	if len(document) == 0 {
		return "", nil
	}
	out, err := yaml.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("write settings: %w", err)
	}
	return string(out), nil
}

// scalar returns what was typed as the number or truth that it is; other text
// stays text, which the pipeline refuses with its own words.
func scalar(typed string) any {
	if n, err := strconv.Atoi(typed); err == nil {
		return n
	}
	if x, err := strconv.ParseFloat(typed, 64); err == nil {
		return x
	}
	if typed == "true" || typed == "false" {
		return typed == "true"
	}
	return typed
}
