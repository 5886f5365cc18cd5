package patterns

import (
	"time"

	"palimpsest/pipeline/excerpts"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/tenants"
)

// model is the page's data.
type model struct {
	Who       tenants.Principal
	MayChange bool
	Rows      []patterns.Pattern
	First     bool   // this is the first page of the list
	Next      string // cursor of the next page; "" if absent
	Now       time.Time
	Done      string // the last action; "" if none
	Conflict  bool   // someone else changed it meanwhile

	Form   *formModel        // the form to add or edit a rule, or nil
	Delete *patterns.Pattern // the rule to delete, or nil
}

// done confirms an action.
func done(what string) string {
	return map[string]string{
		"added": "The rule is added.", "approved": "The rule is approved. It is added to relevant prompts.",
		"disabled": "The rule is disabled. It is no longer added to sessions.", "saved": "The rule is saved.", "deleted": "The rule is deleted.",
	}[what]
}

// named returns the words that identify a rule in a button's label.
func named(p *patterns.Pattern) string {
	const long = 60
	return excerpts.Start(p.Text, long)
}

func kindName(kind patterns.Kind) string {
	return map[patterns.Kind]string{patterns.Convention: "convention", patterns.Directive: "standing order"}[kind]
}
