package tuning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"palimpsest/pipeline"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// moduleName is the query parameter, and the input, with the module whose settings are
// shown.
const moduleName = "module"

// firstModule is shown where none is asked for.
const firstModule = "ipc"

// module is what the page says of a module.
type module struct{ Name, Title, Does string }

// modules are the modules of the product; a test holds them against the pipeline's.
func modules() []module {
	return []module{
		{"ipc", "infinite persistent context", "Compresses the oldest turns first. Every original stays in the archive."},
		{"compaction-bridge", "after a client’s own compaction", "Puts back what a client’s own summary lost."},
		{"rehydrator", "earlier turns", "Brings back turns that someone refers to."},
		{"patterns", "what the team has learnt", "Puts approved rules into prompts, once a session."},
		{"semantic-cache", "answers given again", "Answers a single question with the answer to the same one."},
	}
}

// moduleNamed returns the name of a module of the product: the one that is asked for,
// or the first.
func moduleNamed(name string) string {
	if slices.Contains(pipeline.Modules(), name) {
		return name
	}
	return firstModule
}

func moduleOf(name string) module {
	all := modules()
	return all[max(0, slices.IndexFunc(all, func(m module) bool { return m.Name == name }))]
}

// model is the page.
type model struct {
	Who       tenants.Principal
	Now       time.Time // of the figures
	MayChange bool
	Version   int // that saving is over; 0 if nothing saved yet
	Typed     values
	Saved     values
	Defaults  values
	Presets   []preset
	Module    string // whose settings are shown

	Errors map[string]string // what is wrong with settings, by their paths
	Wrong  string            // what is wrong with a value that is not on the page; empty if none

	Preview  previewModel
	Live     map[string]figureOf
	Windows  windowsModel
	Keys     keysModel
	Conflict *conflictModel // nil if no one saved in the meantime

	SavedVersion int // that was just saved; 0 if none
}

func newModel(who tenants.Principal, st state, typed values) model {
	return model{
		Who: who, MayChange: who.Role.May(tenants.ManagePipeline), Version: st.saved.Version, Module: firstModule,
		Typed: typed, Saved: st.now, Defaults: st.defaults, Presets: presets(), Windows: newWindows("", ""),
	}
}

// refusing returns the page with what is wrong, at its field and with the module shown
// that has it.
func (m model) refusing(invalid pipeline.Invalid) model {
	path := invalid.Field
	if path == summaryPath { // its members are fields of their own
		name, _, _ := strings.Cut(invalid.Message, " ")
		if name == "names" {
			name = "model"
		}
		if _, known := settingOf(path + "." + name); known {
			path += "." + name
		}
	}
	s, known := settingOf(path)
	if !known {
		m.Wrong = invalid.Error()
		return m
	}
	m.Module = s.Module
	m.Errors = map[string]string{path: components.FieldError(s.Label+":", invalid.Message)}
	return m
}

// changes returns what saving would change.
func (m model) changes() []difference { return differences(m.Saved, m.Typed) }

// label returns the difference's name as people know it.
func (d difference) label() string { return strings.TrimPrefix(d.Name, switchName) }

// canMove reports whether a module that runs has a neighbour that it can be moved past.
func (m model) canMove(name string, by int) bool {
	running := m.Typed.running()
	at := slices.Index(running, name)
	return at >= 0 && at+by >= 0 && at+by < len(running)
}

// figure returns what a module did of late.
func (m model) figure(name string) figureOf { return m.Live[name] }

// cardsOf returns the cards of a module.
func cardsOf(name string) []card {
	return slices.DeleteFunc(cards(), func(c card) bool { return c.Module != name })
}

// field is a setting of the page with its values.
type field struct {
	components.FieldModel

	setting setting
	Saved   string
	Default string
	Locked  bool
}

func (m model) field(s setting) field {
	path := s.path()
	return field{
		FieldModel: components.FieldModel{Label: s.Label, Name: path, Value: m.Typed.Set[path], Hint: s.Hint, Error: m.Errors[path]},
		setting:    s, Saved: m.Saved.Set[path], Default: m.Defaults.Set[path], Locked: !m.MayChange,
	}
}

// target is the field that slider and presets set.
func (m model) target() field {
	s, _ := settingOf(targetPath)
	return m.field(s)
}

// isDefault reports whether the field has its default.
func (f field) isDefault() bool { return f.setting.isSame(f.Value, f.Default) }

// isWide reports whether the input takes a line of its own.
func (f field) isWide() bool { return f.setting.Kind == lines || f.setting.Kind == paragraph }

// facts are the range and the default of the field in words.
func (f field) facts() string {
	facts := []string{}
	if s := f.setting; s.Low != "" {
		facts = append(facts, grouped(s.Low)+" to "+grouped(s.High)+unit(s.Unit))
	}
	return strings.Join(append(facts, "default "+grouped(f.setting.said(f.Default, brief))), " · ")
}

func unit(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}

// grouped writes a whole number with its thousands apart.
func grouped(text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text
	}
	return components.Count(n)
}

// described returns the ids of the notes at the field.
func (f field) described() string {
	if f.Error != "" {
		return f.ID() + "-hint " + f.ID() + "-error"
	}
	return f.ID() + "-hint"
}

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
		values, err := valuesOf(config)
		if err != nil {
			continue
		}
		found = append(found, preset{
			Name: known.Name, Title: known.Title, Words: words[known.Name],
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

// is reports whether what was typed is a preset: its values, and the defaults for all else.
func (m model) is(p preset) bool {
	for _, card := range ipcCards() {
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

// isCustom reports whether what was typed is not one of the presets.
func (m model) isCustom() bool { return !slices.ContainsFunc(m.Presets, m.is) }

// isAdvanced reports whether the settings below the preview are unfolded: one of them is
// wrong, or differs from what is saved.
func (m model) isAdvanced() bool {
	for _, card := range ipcCards() {
		for _, setting := range card.Settings {
			field := m.field(setting)
			if field.Name != targetPath && (field.Error != "" || !setting.isSame(field.Value, field.Saved)) {
				return true
			}
		}
	}
	return false
}

// advancedSections names the sections of the settings below the preview.
func advancedSections() string {
	var titles []string
	for _, card := range ipcCards() {
		if card.Title != dialCard {
			titles = append(titles, card.Title)
		}
	}
	return strings.Join(titles, " · ")
}

func (p preset) summary() string { return fmt.Sprintf("%s · keep %s", p.Target, p.Keep) }

// modulePath is where a module's settings are shown.
func modulePath(name string) string { return paths.With(paths.Pipeline, moduleName, name) }

// notes are the attributes that tie an input to its notes.
func notes(f field) templ.Attributes {
	attributes := templ.Attributes{"aria-describedby": f.described()}
	if f.Error != "" {
		attributes["aria-invalid"] = "true"
	}
	return attributes
}

func sourceName(source tenants.WindowSource) string {
	if source == tenants.WindowOverride {
		return "set by someone"
	}
	return "learnt from the provider"
}

// draft names what the person has typed here and not saved, as the browser keeps it.
func (m model) draft() string {
	return m.Who.Workspace.ID.String() + "/" + m.Who.User.ID.String()
}
