package tuning

import (
	"fmt"
	"strconv"
	"time"

	"palimpsest/pipeline"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// model is the page.
type model struct {
	Who       tenants.Principal
	MayChange bool
	Version   int // that saving is over; 0: nothing saved yet
	Typed     values
	Saved     values
	Presets   []preset

	Target, CompressTo, LastTurns, Tokens, Deepest components.FieldModel

	Wrong   string // what is wrong with a value that is not on the page; empty: nothing
	Preview previewModel

	SavedVersion int          // that was just saved; 0: none
	IsConflict   bool         // somebody else saved in the meantime
	Conflict     []difference // what differs then
	ConflictAt   time.Time
}

func newModel(who tenants.Principal, version int, typed, saved values, invalid *pipeline.Invalid) model {
	m := model{Who: who, MayChange: who.Role.May(tenants.ManagePipeline), Version: version, Typed: typed, Saved: saved, Presets: presets()}
	field := func(label, name, value, hint string) components.FieldModel {
		return components.FieldModel{Label: label, Name: section + "." + name, Value: value, Hint: hint}
	}
	m.Target = field("Target utilization", "targetUtilization", typed.TargetUtilization, "share of the model’s context window that a request may fill before the oldest turns are compressed")
	m.CompressTo = field("Compress down to", "compressTo", typed.CompressTo, "compressTo: share of the window that is filled after an epoch. A lower target lowers it along.")
	m.LastTurns = field("Newest turns kept verbatim", "preserveLastTurns", typed.PreserveLastTurns, "preserveLastTurns")
	m.Tokens = field("Newest tokens kept verbatim", "preserveTokens", typed.PreserveTokens, "preserveTokens: counts where it keeps more than the turns do")
	m.Deepest = field("Deepest level", "deepestLevel", typed.DeepestLevel, "How far old turns may fade")
	if invalid == nil {
		return m
	}
	for _, field := range []*components.FieldModel{&m.Target, &m.CompressTo, &m.LastTurns, &m.Tokens, &m.Deepest} {
		if field.Name == invalid.Field {
			field.Error = components.FieldError(field.Label+":", invalid.Message)
			return m
		}
	}
	m.Wrong = invalid.Error()
	return m
}

// changes returns what saving would change.
func (m model) changes() []difference { return differences(m.Saved, m.Typed) }

// preset is a named set of settings to start from.
type preset struct {
	Name, Title, Words string
	Target, Keep       string
}

// presets returns the presets with the values that they set.
func presets() []preset {
	words := map[string]string{
		"default":       "Starts at three quarters of the window. Suits most coding agents.",
		"aggressive":    "Starts at half the window. Smaller prompts, and the provider’s cache is rewritten more often.",
		"quality-first": "Steps in only near the limit and keeps more of the newest turns.",
	}
	var found []preset
	for _, known := range pipeline.Presets() {
		config, err := pipeline.ParseConfig([]byte(known.YAML))
		if err != nil {
			continue // a test reads them all
		}
		values := valuesOf(config)
		found = append(found, preset{
			Name: known.Name, Title: known.Title, Words: words[known.Name],
			Target: values.TargetUtilization, Keep: values.PreserveLastTurns,
		})
	}
	return found
}

func presetNamed(name string) (preset, bool) {
	for _, preset := range presets() {
		if preset.Name == name {
			return preset, true
		}
	}
	return preset{}, false
}

func (p preset) path() string { return paths.With(paths.Pipeline, "preset", p.Name) }

// isOf reports whether the values are those of the preset.
func (p preset) isOf(v values) bool {
	return scalar(p.Target) == scalar(v.TargetUtilization) && scalar(p.Keep) == scalar(v.PreserveLastTurns)
}

// levels are the choices of the deepest level.
func levels() []components.Option {
	return []components.Option{{Value: "0", Label: "Off"}, {Value: "1", Label: "L1"}, {Value: "2", Label: "L2"}, {Value: "3", Label: "L3"}}
}

func (p preset) summary() string { return fmt.Sprintf("%s · keep %s", p.Target, p.Keep) }

// minClear is what a script needs to lower compressTo as following does.
func (m model) minClear() string { return strconv.FormatFloat(m.Saved.minClear, 'f', -1, 64) }

func (m model) savedText() string { return strconv.FormatBool(m.Saved.PreserveSystem) }
