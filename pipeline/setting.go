package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Kind says how people enter a setting, and how the input is read.
type Kind string

// The kinds of settings.
const (
	Number      Kind = "number"    // a share or a count; empty if optional and left out
	Toggle      Kind = "toggle"    // "true" or "false"
	Choice      Kind = "choice"    // one of a few texts or numbers
	TokenWindow Kind = "window"    // "auto" or a number
	Numbers     Kind = "numbers"   // whole numbers, separated by commas
	Word        Kind = "word"      // a short text
	Lines       Kind = "lines"     // texts, one per line
	Paragraph   Kind = "paragraph" // a long text
)

// Setting describes a setting of a module: its name in a config, its valid values, and its form in the
// dashboard.
type Setting struct { //nolint:recvcheck // Within returns a changed copy
	Name        string // in the module's section of a config
	Kind        Kind
	Label, Hint string
	Unit        string // of a number; "" if absent
	Step        string // of a number
	Low, High   string // of a number, as text
	Options     []Option

	// Members are further settings of an enabled toggle. A config holds them in place of true.
	Members []Setting

	// Reserved says why the setting has no effect; "" if it has one. Configs may hold it, but the dashboard
	// hides it.
	Reserved string

	// IsRare hides the setting in the dashboard because few people change it. YAML and the API can set it.
	IsRare bool

	IsOptional bool   // a number may be left out
	First      string // a member's first value when its toggle is turned on; required for members that must not be empty

	access access
}

// Option is one of the few valid values of a setting.
type Option struct {
	Value, Label string
	Meaning      string // for the model, in one sentence; "" if the label suffices
}

// access reads, writes and checks a setting in the settings of its module.
type access struct {
	read  func(Settings, *yaml.Node) (wrong string)
	write func(Settings) (*yaml.Node, error)
	check func(Settings) (wrong string)

	furthest func(Rights) string // of a choice that Within bounds; nil if unbounded
}

// Field returns the setting with the field that at points to in the module's settings C. check returns an
// error text for an invalid value with the allowed ones, or "".
func Field[C, T any](at func(*C) *T, check func(T) string, s Setting) Setting {
	field := func(settings Settings) *T {
		own, is := any(settings).(*C)
		if !is {
			panic(fmt.Sprintf("%s: a setting of %T is read in %T", s.Name, own, settings))
		}
		return at(own)
	}
	isWhole := s.Kind == TokenWindow
	switch any(*new(T)).(type) {
	case int, []int:
		isWhole = true
	}
	s.access = access{
		read: func(settings Settings, node *yaml.Node) string {
			var value T
			if err := node.Decode(&value); err != nil {
				return explain(node, err)
			}
			if number, has := Fraction(node); isWhole && has { // because the decoder would truncate it
				return fmt.Sprintf("%q must be a whole number", number)
			}
			wrong := check(value)
			if wrong == "" {
				*field(settings) = value
			}
			return wrong
		},
		write: func(settings Settings) (*yaml.Node, error) { return written(*field(settings)) },
		check: func(settings Settings) string { return check(*field(settings)) },
	}
	return s
}

// ShareField returns the setting of a share.
func ShareField[C any](at func(*C) *float64, lowest, highest float64, s Setting) Setting {
	end := func(end float64) string { return strings.TrimSuffix(strconv.FormatFloat(end, 'f', 2, 64), ".00") }
	s.Kind, s.Low, s.High, s.Step = Number, end(lowest), end(highest), "0.01"
	return Field(at, func(value float64) string {
		if value >= lowest && value <= highest { // false for NaN
			return ""
		}
		return fmt.Sprintf("%v is out of range; allowed is %.2f to %.2f", value, lowest, highest)
	}, s)
}

// CountField returns the setting of a whole number; with Kind Choice, of a few of them.
func CountField[C any](at func(*C) *int, lowest, highest int, s Setting) Setting {
	if s.Kind == "" {
		s.Kind, s.Low, s.High = Number, strconv.Itoa(lowest), strconv.Itoa(highest)
	}
	return Field(at, func(value int) string {
		if value >= lowest && value <= highest {
			return ""
		}
		return fmt.Sprintf("%d is out of range; allowed is %d to %d", value, lowest, highest)
	}, s)
}

// SizeField returns the setting of a number of bytes, 0 for no limit.
func SizeField[C any](at func(*C) *int, lowest, highest int, s Setting) Setting {
	s.Kind, s.Low, s.High = Number, "0", strconv.Itoa(highest)
	return Field(at, func(value int) string {
		if value == 0 || value >= lowest && value <= highest {
			return ""
		}
		return fmt.Sprintf("%d is out of range; allowed is 0 for no limit, or %d to %d", value, lowest, highest)
	}, s)
}

// ToggleField returns the setting of a switch.
func ToggleField[C any](at func(*C) *bool, s Setting) Setting {
	s.Kind = Toggle
	return Field(at, func(bool) string { return "" }, s)
}

// TextField returns the setting of a short text.
func TextField[C any](at func(*C) *string, s Setting) Setting {
	s.Kind = Word
	return Field(at, func(string) string { return "" }, s)
}

// ChoiceField returns the setting of one of a few texts, given in Options.
func ChoiceField[C any](at func(*C) *string, s Setting) Setting {
	s.Kind = Choice
	return Field(at, func(value string) string {
		values := make([]string, len(s.Options))
		for i, option := range s.Options {
			values[i] = option.Value
		}
		if slices.Contains(values, value) {
			return ""
		}
		return fmt.Sprintf("%q is not allowed; choose one of %s", value, strings.Join(values, ", "))
	}, s)
}

// PlacementField returns the setting for where a module puts its text.
func PlacementField[C any](at func(*C) *string) Setting {
	return ChoiceField(at, Setting{
		Name: "placement", IsRare: true, Label: "Where it goes", Hint: "At the newest turn: a changed system prompt costs the provider’s whole cache.",
		Options: []Option{{Value: PlacementTurn, Label: "Newest turn"}, {Value: PlacementSystem, Label: "System prompt"}},
	})
}

// The values of the setting scope of modules that remember: whose text may reach a prompt. Below
// ScopeWorkspace, two end users never share anything.
const (
	ScopeSession   = "session"   // of the same session
	ScopeKey       = "key"       // of sessions of the same API key
	ScopePerson    = "person"    // of sessions of all API keys of the same member
	ScopeProject   = "project"   // of all sessions with the same tag "project"
	ScopeWorkspace = "workspace" // of all sessions of the workspace
)

// Scopes returns the values of the setting scope, the narrowest first.
func Scopes() []string {
	return []string{ScopeSession, ScopeKey, ScopePerson, ScopeProject, ScopeWorkspace}
}

// ScopeField returns the setting for whose text may reach whom. Its hint explains that.
func ScopeField[C any](at func(*C) *string, label, hint string) Setting {
	return ChoiceField(at, Setting{
		Name: "scope", Label: label, Hint: hint,
		Options: []Option{
			{Value: ScopeSession, Label: "Session"}, {Value: ScopeKey, Label: "API key"}, {Value: ScopePerson, Label: "Person"},
			{Value: ScopeProject, Label: "Project"}, {Value: ScopeWorkspace, Label: "Workspace"},
		},
	}).Within(func(rights Rights) string { return cmp.Or(rights.Scope, ScopeSession) })
}

// Allowed describes the valid values, as YAML writes them.
func (s *Setting) Allowed() string {
	switch s.Kind {
	case Number:
		return strings.TrimSpace(s.Low + " to " + s.High + " " + s.Unit)
	case Toggle:
		if len(s.Members) == 0 {
			return "true or false"
		}
		names := make([]string, len(s.Members))
		for i := range s.Members {
			names[i] = s.Members[i].Name
		}
		return "false, or a mapping of " + strings.Join(names, ", ")
	case Choice:
		values := make([]string, len(s.Options))
		for i, option := range s.Options {
			values[i] = option.Value
		}
		return strings.Join(values, ", ")
	case TokenWindow:
		return "auto, or a number of " + s.Unit
	case Numbers:
		return "a list of whole numbers"
	case Lines:
		return "a list of texts"
	default:
		return "a text"
	}
}

// written returns a value as YAML, lists and members on one line.
func written(value any) (*yaml.Node, error) {
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return nil, fmt.Errorf("write a setting: %w", err)
	}
	if node.Kind != yaml.ScalarNode {
		node.Style = yaml.FlowStyle
	}
	return &node, nil
}

// Fraction returns the first number in a node that isn't whole.
func Fraction(node *yaml.Node) (number string, has bool) {
	for _, element := range node.Content {
		if number, has := Fraction(element); has {
			return number, true
		}
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!float" {
		return "", false
	}
	value, err := strconv.ParseFloat(node.Value, 64)
	return node.Value, err != nil || value != math.Trunc(value)
}

// explain returns an error text for a value that could not be read.
func explain(node *yaml.Node, err error) string {
	var kinds *yaml.TypeError
	if !errors.As(err, &kinds) || len(kinds.Errors) == 0 {
		return err.Error()
	}
	return unread(node, kinds.Errors[0])
}
