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

// moduleName is the query parameter, and the input, with the selected module.
const moduleName = "module"

// firstModule is the default.
const firstModule = ipc.Name

// moduleNamed returns the requested module's name if it exists, otherwise firstModule.
func moduleNamed(name string) string {
	if slices.Contains(modules.Catalog().Names(), name) {
		return name
	}
	return firstModule
}

// moduleOf returns a module's description.
func moduleOf(name string) pipeline.Description {
	module, _ := modules.Catalog().Module(name)
	return module
}

// model is the page's data.
type model struct {
	Who       tenants.Principal
	Now       time.Time // of the figures
	MayChange bool
	Version   int // the version that saving replaces; 0 before the first
	Typed     values
	Saved     values
	Defaults  values
	Presets   []preset
	Module    string // whose settings are shown
	Chosen    bool   // someone chose the module, rather than the page

	Errors map[string]string // errors of settings, by their paths
	Wrong  string            // the error of a value that is not on the page; "" if absent

	Preview  previewModel
	Live     map[string]figureOf
	Windows  windowsModel
	Keys     keysModel
	Conflict *conflictModel // nil unless someone saved in the meantime

	SavedVersion int // that was just saved, or 0
}

func newModel(who tenants.Principal, st state, typed values) model {
	return model{
		Who: who, MayChange: who.Role.May(tenants.ManagePipeline), Version: st.saved.Version, Module: firstModule,
		Typed: typed, Saved: st.now, Defaults: st.defaults, Presets: presets(), Windows: newWindows("", ""),
	}
}

// refusing returns the page with the error at its field, in the module that has the field.
func (m model) refusing(invalid pipeline.Invalid) model {
	path := invalid.Field
	s, known := settingOf(path)
	if name, _, _ := strings.Cut(invalid.Message, " "); known && len(s.Members) > 0 { // members are fields of their own
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

// changes returns the effect of saving.
func (m model) changes() []difference { return differences(m.Saved, m.Typed) }

// label returns the difference's display name.
func (d difference) label() string { return strings.TrimPrefix(d.Name, switchName) }

// canMove reports whether a running module can be moved past a neighbor.
func (m model) canMove(name string, by int) bool {
	running := m.Typed.running()
	at := slices.Index(running, name)
	return at >= 0 && at+by >= 0 && at+by < len(running)
}

// field is a setting with its values.
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

// isWide reports whether the input needs a line of its own.
func (f field) isWide() bool {
	return f.setting.Kind == pipeline.Lines || f.setting.Kind == pipeline.Paragraph
}

// facts describes the field's range and default.
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

// grouped formats a whole number with thousands separators.
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

// modulePath is the address of a module's settings.
func modulePath(name string) string { return paths.With(paths.Pipeline, moduleName, name) }

// notes are the attributes that link an input to its notes.
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

// draft is the browser's key for the person's unsaved input.
func (m model) draft() string {
	return m.Who.Workspace.ID.String() + "/" + m.Who.User.ID.String()
}
