package tuning

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
)

// The page shows some compression settings in its own way: presets, and a slider for the target, which the
// goal follows down.
const (
	targetPath   = ipc.Name + ".targetUtilization"
	goalPath     = ipc.Name + ".compressTo"
	minClearPath = ipc.Name + ".minClear"
	triggerPath  = ipc.Name + ".trigger"
	turnsPath    = ipc.Name + ".preserveLastTurns"
	summaryPath  = ipc.Name + ".llmCompression"
)

// preset is a named set of settings to start from.
type preset struct {
	Name, Title, Words string
	Target, Keep       string
}

// presets returns the presets with their values.
func presets() []preset {
	var found []preset
	for _, known := range modules.Catalog().Presets() {
		config, err := modules.Catalog().Parse([]byte(known.YAML))
		if err != nil {
			continue // a test reads all of them
		}
		values, err := valuesOf(config)
		if err != nil {
			continue
		}
		found = append(found, preset{
			Name: known.Name, Title: known.Title, Words: known.Does,
			Target: values.Set[targetPath], Keep: values.Set[turnsPath],
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

// is reports whether the typed values are a preset's, with the defaults for all other settings.
func (m model) is(p preset) bool {
	for _, card := range cardsOf(ipc.Name) {
		for _, setting := range card.Settings {
			field := m.field(setting)
			switch field.Name {
			case targetPath:
				field.Default = p.Target
			case turnsPath:
				field.Default = p.Keep
			}
			if !field.isDefault() {
				return false
			}
		}
	}
	return true
}

// isCustom reports whether the typed values match no preset.
func (m model) isCustom() bool { return !slices.ContainsFunc(m.Presets, m.is) }

// isAdvanced reports whether the settings below the preview are unfolded, because a module was chosen, or one
// of them is invalid or differs from the saved value.
func (m model) isAdvanced() bool {
	isShownAbove := func(path string) bool { return path == targetPath || path == triggerPath }
	for path := range m.Errors {
		if !isShownAbove(path) {
			return true
		}
	}
	return m.Chosen || slices.ContainsFunc(m.changes(), func(change difference) bool { return !isShownAbove(change.Name) })
}

// advancedCards are a module's settings below the preview.
func advancedCards(module string) []card {
	return slices.DeleteFunc(shownCards(module), func(card card) bool { return module == ipc.Name && card.Title == ipc.TargetCard })
}

func (p preset) summary() string { return fmt.Sprintf("%s · keeps %s turns", p.Target, p.Keep) }

// target is the field of the slider and the presets.
func (m model) target() field {
	s, _ := settingOf(targetPath)
	return m.field(s)
}

// trigger is the question when old turns are shortened.
func (m model) trigger() field {
	s, _ := settingOf(triggerPath)
	return m.field(s)
}

// decides reports whether cost decides when old turns are shortened. In that case the slider has no effect.
func (m model) decides() bool { return m.Typed.Set[triggerPath] == ipc.TriggerBreakEven }

// shown returns the values with the two watermarks as the form first showed them.
func (v values) shown(form url.Values) values {
	next := v.clone()
	for _, path := range []string{targetPath, goalPath} {
		if text := form.Get("shown." + path); text != "" {
			next.Set[path] = text
		}
	}
	return next
}

// following lowers compressTo along with a changed target, so that an epoch has something to free. A typed
// compressTo stays as it is, because the pipeline refuses it if it is not below the target.
func (v values) following(shown values) values {
	target, err := strconv.ParseFloat(v.Set[targetPath], 64)
	goal, goalErr := strconv.ParseFloat(v.Set[goalPath], 64)
	minClear, clearErr := strconv.ParseFloat(v.Set[minClearPath], 64)
	same := func(path string) bool { return isSameNode(scalar(v.Set[path]), scalar(shown.Set[path])) }
	switch {
	case err != nil || goalErr != nil || clearErr != nil, !same(goalPath), same(targetPath):
		return v
	}
	if highest := max(target-minClear, target/2); goal > highest {
		v = v.clone()
		v.Set[goalPath] = strconv.FormatFloat(highest, 'f', 2, 64)
	}
	return v
}

// with returns the values with a preset's applied.
func (v values) with(preset preset) values {
	next := v.clone()
	next.Set[targetPath], next.Set[turnsPath] = preset.Target, preset.Keep
	return next
}
