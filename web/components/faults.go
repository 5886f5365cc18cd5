package components

import (
	"strconv"
	"strings"

	"palimpsest/pipeline"
)

// Fault is an error in a submitted document.
type Fault struct {
	Line  int    // from 1; 0 if unknown
	Text  string // the line's text
	Field string
	Says  string
}

// FaultsOf returns the faults of a document with their lines.
func FaultsOf(document string, faults pipeline.Faults) []Fault {
	lines := strings.Split(document, "\n")
	found := make([]Fault, len(faults))
	for i, each := range faults {
		found[i] = Fault{Line: each.Line, Field: each.Field, Says: strings.TrimSuffix(each.Message, ".")}
		if each.Line > 0 && each.Line <= len(lines) {
			found[i].Text = lines[each.Line-1]
		}
	}
	return found
}

func (f Fault) place() string {
	if f.Line == 0 {
		return "Whole document"
	}
	return "Line " + strconv.Itoa(f.Line)
}

// sentence returns the fault as a sentence.
func (f Fault) sentence() string {
	said := f.Says
	if f.Field != "" {
		said = f.Field + " " + said
	} else {
		said = Capitalize(said)
	}
	if strings.HasSuffix(said, "?") {
		return said
	}
	return said + "."
}

// KeepKeys is the choice to keep the scope proxy of a leaving member's API keys.
const KeepKeys = "keep"

// KeyFates are the choices for the API keys of a person who leaves.
func KeyFates() []Option {
	return []Option{{Value: "revoke", Label: "revoke them"}, {Value: KeepKeys, Label: "let them go on sending requests"}}
}
