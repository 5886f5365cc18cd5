package patterns_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/modules/patterns"
)

func TestTypedTextIsOneLineWithoutSecrets(t *testing.T) {
	t.Parallel()
	if text, err := patterns.CheckText("  Never push\n to   main. "); err != nil || text != "Never push to main." {
		t.Errorf("%q, %v", text, err)
	}
	for _, wrong := range []string{"", " \n", "the", "the token is abcd1234efgh", strings.Repeat("long ", 61)} {
		_, err := patterns.CheckText(wrong)
		if invalid, is := errors.AsType[patterns.Invalid](err); !is || invalid.Field != "text" || !strings.HasPrefix(err.Error(), "text ") {
			t.Errorf("%.20q: %v", wrong, err)
		}
	}
}

func TestTypedConditionsAreReadAsTextsAre(t *testing.T) {
	t.Parallel()
	when, err := patterns.CheckWhen(patterns.When{
		Terms: []string{"Deploying"}, Paths: []string{" go.mod "}, Signatures: []string{"main.go:12: error: cannot find package foo"},
	})
	if err != nil || !slices.Equal(when.Paths, []string{"go.mod"}) || len(when.Terms) != 1 || len(when.Signatures) != 1 || when.IsNever() {
		t.Errorf("%+v, %v", when, err)
	}
	if !(patterns.When{}).IsNever() || (patterns.When{Always: true}).IsNever() {
		t.Error("only what names nothing is never relevant")
	}
	for field, wrong := range map[string]patterns.When{
		"when.signatures": {Signatures: []string{"fine"}}, "when.paths": {Paths: []string{" "}},
		"when.terms": {Terms: strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november")},
	} {
		_, err := patterns.CheckWhen(wrong)
		if invalid, is := errors.AsType[patterns.Invalid](err); !is || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestFactsForTheAuditLogHoldNoWords(t *testing.T) {
	t.Parallel()
	p := patterns.Pattern{Text: "said", When: patterns.When{Terms: []string{"said"}}, Status: patterns.Disabled, Kind: patterns.Directive, Version: 3}
	if facts := p.Facts(); len(facts) != 3 || facts["version"] != "3" || facts["status"] != "disabled" || facts["kind"] != "directive" {
		t.Errorf("facts: %v", facts)
	}
}
