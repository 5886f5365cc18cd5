package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/web/webtest"
)

const said = "We use pnpm here, not npm."

// patternsSetup returns someone whose workspace has a rule.
func patternsSetup(t *testing.T) (*webtest.Person, patterns.Pattern) {
	t.Helper()
	person := webtest.Start(t).SignUp(t, "northbeam")
	return person, person.Learn(said)
}

// statusOf returns what became of a rule.
func statusOf(t *testing.T, person *webtest.Person, rule patterns.Pattern) patterns.Pattern {
	t.Helper()
	found, err := person.Learned.Pattern(t.Context(), person.Workspace.ID, rule.ID)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRuleIsShownApprovedDisabledAndDeleted(t *testing.T) {
	t.Parallel()
	person, rule := patternsSetup(t)
	at := "/patterns/" + rule.ID.String()

	list := person.Get("/patterns")
	for _, want := range []string{said, "convention", "approved"} {
		if !strings.Contains(list.Text("main"), want) {
			t.Errorf("the list does not say %q: %s", want, list.Text("main"))
		}
	}
	if page := person.Post(at + "/disable"); !strings.Contains(page.TestID("done"), "is disabled") || !strings.Contains(page.TestID("rules"), "disabled") {
		t.Errorf("disable: %s", page.Text("main"))
	}
	version := person.Get("/patterns").Find(`form[action$="/approve"] input[name="version"]`).AttrOr("value", "")
	if page := person.Post(at+"/approve", "version", version); !strings.Contains(page.TestID("done"), "is approved") {
		t.Errorf("approve: %s with %d", page.Path, page.Status)
	}
	if found := statusOf(t, person, rule); found.Status != patterns.Approved || found.EditedBy != person.User.ID {
		t.Errorf("approved: %+v", found)
	}
	if page := person.Get(at + "/delete"); !page.Has(`dialog button.dan`) {
		t.Error("no one is asked before a rule is deleted")
	}
	if page := person.Post(at + "/delete"); !strings.Contains(page.TestID("done"), "is deleted") || page.Has(`[data-testid="rules"]`) {
		t.Errorf("delete: %s", page.Text("main"))
	}
}

func TestRuleIsAddedAndEditedAndWhatCannotBeOneIsRefused(t *testing.T) {
	t.Parallel()
	person, rule := patternsSetup(t)

	refused := person.Post("/patterns", "kind", "directive", "text", "the password is hunter22", "terms", "deploy")
	if refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.TestID("error-text"), "key, a password") || refused.Text("#field-text") != "the password is hunter22" ||
		refused.Find("#field-terms").AttrOr("value", "") != "deploy" {
		t.Errorf("a secret: %d %s", refused.Status, refused.Text("dialog"))
	}
	wrong := person.Post("/patterns", "text", "Never deploy on Friday.", "signatures", "ok")
	if wrong.Status != http.StatusUnprocessableEntity || !strings.Contains(wrong.TestID("error-signatures"), "report an error") || !wrong.Has("dialog details[open]") {
		t.Errorf("a line that reports nothing: %d %s", wrong.Status, wrong.Text("dialog"))
	}
	if page := person.Post("/patterns", "kind", "directive", "text", "Never deploy  on Friday."); !strings.Contains(page.TestID("rules"), "Never deploy on Friday.standing order") {
		t.Errorf("added: %s", page.Text("main"))
	}
	at := "/patterns/" + rule.ID.String() + "/edit"
	form := person.Get(at)
	if form.Text("#field-text") != said || form.Find(`dialog input[name="version"]`).AttrOr("value", "") != "1" {
		t.Errorf("the form: %s", form.Text("dialog"))
	}
	person.Post(at, "version", "1", "text", "We use bun here.", "paths", "package.json\n\nbun.lock", "always", "yes")
	found := statusOf(t, person, rule)
	if found.Text != "We use bun here." || len(found.When.Paths) != 2 || !found.When.Always || found.Status != patterns.Approved {
		t.Errorf("edited: %+v", found)
	}
	late := person.Post(at, "version", "1", "text", "We use yarn here.")
	if late.Status != http.StatusConflict || !strings.Contains(late.TestID("conflict"), "meantime") || late.Text("#field-text") != "We use yarn here." {
		t.Errorf("over someone's change: %d %s", late.Status, late.Text("main"))
	}
	if page := person.Post("/patterns/"+rule.ID.String()+"/disable", "version", "1"); page.Status != http.StatusConflict || statusOf(t, person, rule).Status != patterns.Approved {
		t.Errorf("disabled what was never seen: %d", page.Status)
	}
}

func TestPagesOfRulesHoldEachOnce(t *testing.T) {
	t.Parallel()
	person, _ := patternsSetup(t)
	words := strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa quebec romeo sierra tango uniform victor whiskey xray yankee zulu " +
		"amber birch cedar dahlia elm fern ginger hazel iris jasmine kelp laurel maple nettle olive poppy quince rowan sage thyme ulmus violet willow yarrow zinnia basil")
	for _, word := range words {
		person.Post("/patterns", "text", "Name it "+word+" always.")
	}
	seen := map[string]bool{}
	pages := 0
	for path := "/patterns"; path != ""; pages++ {
		page := person.Get(path)
		for _, node := range page.Find(`[data-testid="rules"] .rule`).EachIter() {
			if seen[node.Text()] {
				t.Errorf("%q is there twice", node.Text())
			}
			seen[node.Text()] = true
		}
		path = page.Find(`[data-testid="older"]`).AttrOr("href", "")
	}
	if len(seen) != len(words)+1 || pages != 2 {
		t.Errorf("%d rules on %d pages, want %d on 2", len(seen), pages, len(words)+1)
	}
	if page := person.Get("/patterns?cursor=x"); page.Status != http.StatusBadRequest {
		t.Errorf("a made-up cursor: %d", page.Status)
	}
}

func TestNewWorkspaceIsToldWhatRulesAreFor(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "newcomer")

	if page := person.Get("/patterns"); !strings.Contains(page.TestID("empty"), "how to run tests") {
		t.Errorf("%s", page.Text("main"))
	}
}
