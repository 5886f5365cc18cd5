package patterns

import (
	"errors"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// typed is the input for a rule.
type typed struct {
	Kind, Text               string
	Terms, Paths, Signatures string // terms separated by white space, the others one a line
	Always                   bool
}

func readTyped(c echo.Context) typed {
	return typed{
		Kind: c.FormValue("kind"), Text: c.FormValue("text"), Terms: c.FormValue("terms"),
		Paths: c.FormValue("paths"), Signatures: c.FormValue("signatures"), Always: c.FormValue("always") != "",
	}
}

// typedOf returns the input that produces a rule.
func typedOf(p *patterns.Pattern) typed {
	return typed{
		Kind: string(p.Kind), Text: p.Text, Terms: strings.Join(p.When.Terms, " "),
		Paths: strings.Join(p.When.Paths, "\n"), Signatures: strings.Join(p.When.Signatures, "\n"), Always: p.When.Always,
	}
}

// pattern returns the rule from the input, or a patterns.Invalid. Without conditions, the rule applies where
// its own words are used.
func (t typed) pattern(by uuid.UUID) (patterns.Pattern, error) {
	p := patterns.Pattern{Kind: patterns.Convention, CreatedBy: by}
	for _, kind := range patterns.Kinds() {
		if string(kind) == t.Kind {
			p.Kind = kind
		}
	}
	var err error
	if p.Text, err = patterns.CheckText(t.Text); err != nil {
		return p, err
	}
	p.When, err = patterns.CheckWhen(patterns.When{
		Terms: strings.Fields(t.Terms), Paths: lines(t.Paths), Signatures: lines(t.Signatures), Always: t.Always,
	})
	if err == nil && p.When.IsNever() {
		p.When.Terms = patterns.Terms(p.Text)
	}
	return p, err
}

// lines returns the non-empty lines.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// formModel is the form to add or edit a rule.
type formModel struct {
	Title, Action, Submit string
	Version               string // of the rule being edited; "" for a new one
	Kind                  components.FieldModel
	Text                  components.FieldModel
	Terms                 components.FieldModel
	Paths, Signatures     components.FieldModel
	Always                bool
	Open                  bool // the optional fields are unfolded
}

// newForm returns the form with the input and its errors; rule is nil for a new one.
func newForm(rule *patterns.Pattern, t typed, err error) *formModel {
	form := &formModel{Title: "Add a rule", Action: paths.Patterns, Submit: "Add rule", Always: t.Always}
	if rule != nil {
		form.Title, form.Action, form.Submit = "Edit the rule", paths.EditPattern(rule.ID), "Save rule"
		form.Version = strconv.Itoa(rule.Version)
	}
	form.Kind = components.FieldModel{Label: "Kind", Name: "kind", Value: t.Kind}
	form.Text = components.FieldModel{Label: "Rule", Name: "text", Value: t.Text, Hint: "One sentence for the model."}
	form.Terms = components.FieldModel{Label: "Words", Name: "terms", Value: t.Terms, Hint: "The rule is added if one of these is typed. Empty: the rule's own words."}
	form.Paths = components.FieldModel{Label: "Files", Name: "paths", Value: t.Paths, Hint: "The rule is added if one of these is named. One per line."}
	form.Signatures = components.FieldModel{Label: "Errors", Name: "signatures", Value: t.Signatures, Hint: "The rule is added if a tool reports one of these. One per line."}
	form.Open = rule != nil
	if invalid, is := errors.AsType[patterns.Invalid](err); is {
		for name, field := range map[string]*components.FieldModel{
			"text": &form.Text, "when.terms": &form.Terms, "when.paths": &form.Paths, "when.signatures": &form.Signatures,
		} {
			if name == invalid.Field {
				field.Error = components.FieldError(field.Label, invalid.Message)
				form.Open = form.Open || name != "text"
			}
		}
	}
	return form
}

// kinds are the choices of a new rule's kind.
func kinds() []components.Option {
	return []components.Option{
		{Value: string(patterns.Convention), Label: "convention: how your team works"},
		{Value: string(patterns.Directive), Label: "standing order: must always or never be done"},
	}
}
