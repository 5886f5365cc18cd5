package tuning

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// moduleName is the query parameter, and the input, with the module whose settings are
// shown.
const moduleName = "module"

// firstModule is shown where none is asked for.
const firstModule = ipc.Name

// moduleNamed returns the name of a module of the product: the one that is asked for,
// or the first.
func moduleNamed(name string) string {
	if slices.Contains(modules.Catalog().Names(), name) {
		return name
	}
	return firstModule
}

// moduleOf returns what a module of the product says of itself.
func moduleOf(name string) pipeline.Description {
	module, _ := modules.Catalog().Module(name)
	return module
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
	s, known := settingOf(path)
	if name, _, _ := strings.Cut(invalid.Message, " "); known && len(s.Members) > 0 { // they are fields of their own
		if member, is := settingOf(path + "." + name); is {
			s, path = member, member.path()
		} else if at := slices.IndexFunc(s.Members, func(m pipeline.Setting) bool { return m.First != "" }); at >= 0 {
			path += "." + s.Members[at].Name
		}
	}
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

// canMove reports whether a module that runs has a neighbor that it can be moved past.
func (m model) canMove(name string, by int) bool {
	running := m.Typed.running()
	at := slices.Index(running, name)
	return at >= 0 && at+by >= 0 && at+by < len(running)
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

// isDefault reports whether the field has its default.
func (f field) isDefault() bool { return f.setting.isSame(f.Value, f.Default) }

// isWide reports whether the input takes a line of its own.
func (f field) isWide() bool {
	return f.setting.Kind == pipeline.Lines || f.setting.Kind == pipeline.Paragraph
}

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
	return "learned from the provider"
}

// draft names what the person has typed here and not saved, as the browser keeps it.
func (m model) draft() string {
	return m.Who.Workspace.ID.String() + "/" + m.Who.User.ID.String()
}
