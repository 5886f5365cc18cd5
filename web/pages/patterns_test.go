package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

const said = "We use pnpm here, not npm."

// patternsSetup returns someone whose workspace has a session, and a rule found in it.
func patternsSetup(t *testing.T) (*webtest.Person, patterns.Pattern) {
	t.Helper()
	person := webtest.Start(t).SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, 100_000), "laptop")
	person.TalkOnce(secret, 100_000, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Mend the parser."}]}`, "claude-cli/2.1.0")
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
	for _, want := range []string{said, "convention", "1 session", "waits for you", "Candidates 1", "Approved 0"} {
		if !strings.Contains(list.Text("main"), want) {
			t.Errorf("the list does not say %q: %s", want, list.Text("main"))
		}
	}
	places := person.Get(at)
	session := "/sessions/" + person.Newest().ID.String()
	link := places.Find(`[data-testid="places"] a`).AttrOr("href", "")
	if !strings.HasPrefix(link, session+"?") || person.Get(link).Status != http.StatusOK {
		t.Errorf("where it was learned leads to %s", link)
	}
	version := list.Find(`form[action$="/approve"] input[name="version"]`).AttrOr("value", "")
	if page := person.Post(at+"/approve", "version", version); !strings.Contains(page.TestID("done"), "is approved") {
		t.Errorf("approve: %s with %d", page.Path, page.Status)
	}
	if page := person.Get("/patterns"); !strings.Contains(page.Text(`.seg [aria-current]`), "Approved 1") || !strings.Contains(page.TestID("rules"), said) {
		t.Errorf("with nothing to decide, the list opens at %s", page.Text(`.seg [aria-current]`))
	}
	if found := statusOf(t, person, rule); found.Status != patterns.Approved || found.EditedBy != person.User.ID {
		t.Errorf("approved: %+v", found)
	}
	if page := person.Post(at + "/disable"); !strings.Contains(page.TestID("done"), "is disabled") {
		t.Errorf("disable: %s", page.Text("main"))
	}
	if page := person.Get("/patterns?state=disabled"); !strings.Contains(page.TestID("rules"), "disabled") {
		t.Errorf("disabled rules: %s", page.Text("main"))
	}
	if page := person.Get(at + "/delete"); !page.Has(`dialog button.dan`) {
		t.Error("no one is asked before a rule is deleted")
	}
	if page := person.Post(at + "/delete"); !strings.Contains(page.TestID("done"), "is deleted") || page.Has(`[data-testid="rules"]`) {
		t.Errorf("delete: %s", page.Text("main"))
	}
}

func TestRejectedRulesAreAmongTheDisabled(t *testing.T) {
	t.Parallel()
	person, rule := patternsSetup(t)
	rejected := patterns.Rejected
	if _, err := person.Learned.Change(t.Context(), person.Workspace.ID, rule.ID, rule.Version, patterns.Change{Status: &rejected}, person.User.ID, rule.CreatedAt); err != nil {
		t.Fatal(err)
	}
	if page := person.Get("/patterns"); !strings.Contains(page.TestID("rules"), "rejected") || !strings.Contains(page.Text(`.seg [aria-current]`), "Disabled 1") {
		t.Errorf("%s", page.Text("main"))
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
	if found.Text != "We use bun here." || len(found.When.Paths) != 2 || !found.When.Always || found.Status != patterns.Candidate {
		t.Errorf("edited: %+v", found)
	}
	late := person.Post(at, "version", "1", "text", "We use yarn here.")
	if late.Status != http.StatusConflict || !strings.Contains(late.TestID("conflict"), "meantime") || late.Text("#field-text") != "We use yarn here." {
		t.Errorf("over someone's change: %d %s", late.Status, late.Text("main"))
	}
	if page := person.Post("/patterns/"+rule.ID.String()+"/approve", "version", "1"); page.Status != http.StatusConflict || statusOf(t, person, rule).Status != patterns.Candidate {
		t.Errorf("approved what was never seen: %d", page.Status)
	}
}

func TestWordsThatNobodyApprovedAreHeldBackFromWhoMayNotReadThem(t *testing.T) {
	t.Parallel()
	person, rule := patternsSetup(t)
	if page := person.Post("/settings", "time_zone", "UTC", "managers_read", "own", "members_read", "own", "viewers_read", "none"); page.Status != http.StatusOK {
		t.Fatalf("settings: %d", page.Status)
	}
	at := "/patterns/" + rule.ID.String()
	for _, role := range []tenants.Role{tenants.Admin, tenants.Regular, tenants.Viewer} {
		colleague := person.Colleague(role)
		for _, path := range []string{"/patterns", "/patterns/csv", at, "/jump?q=pnpm"} {
			if page := colleague.Get(path); page.Status != http.StatusOK || strings.Contains(page.HTML, "not npm") {
				t.Errorf("%s as %s: %d, %s", path, role, page.Status, page.Text("main"))
			}
		}
		list := colleague.Get("/patterns")
		if !strings.Contains(list.Text("main"), "who may read all sessions") {
			t.Errorf("%s is not told why", role)
		}
		if mayChange := role == tenants.Admin; list.Has(`form[action$="/approve"]`) || list.Has(".callout .i") == mayChange && !strings.Contains(list.Text(".callout"), "As "+string(role)) {
			t.Errorf("as %s: %s", role, list.Text("main"))
		}
	}
	admin := person.Colleague(tenants.Admin)
	if page := admin.Get(at + "/edit"); page.Status != http.StatusForbidden {
		t.Errorf("the form to edit what may not be read: %d", page.Status)
	}
	if page := admin.Post(at+"/edit", "version", "1", "text", "Anything."); page.Status != http.StatusForbidden || statusOf(t, person, rule).Text != said {
		t.Errorf("edited without reading: %d", page.Status)
	}
	if person.Post(at+"/approve", "version", "1"); statusOf(t, person, rule).Status != patterns.Candidate {
		t.Error("someone who may not read a rule has approved it")
	}
	person.Post("/settings", "time_zone", "UTC", "managers_read", "all", "members_read", "own", "viewers_read", "none")
	person.Post(at+"/approve", "version", "1")
	if page := person.Colleague(tenants.Viewer).Get("/patterns"); !strings.Contains(page.TestID("rules"), said) {
		t.Errorf("an approved rule is the workspace's own: %s", page.Text("main"))
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
	for path := "/patterns?state=approved"; path != ""; pages++ {
		page := person.Get(path)
		for _, node := range page.Find(`[data-testid="rules"] .rule`).EachIter() {
			if seen[node.Text()] {
				t.Errorf("%q is there twice", node.Text())
			}
			seen[node.Text()] = true
		}
		path = page.Find(`[data-testid="older"]`).AttrOr("href", "")
	}
	if len(seen) != len(words) || pages != 2 {
		t.Errorf("%d rules on %d pages, want %d on 2", len(seen), pages, len(words))
	}
	if page := person.Get("/patterns?cursor=x"); page.Status != http.StatusBadRequest {
		t.Errorf("a made-up cursor: %d", page.Status)
	}
}

func TestNewWorkspaceIsToldWhenRulesAppear(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "newcomer")

	if page := person.Get("/patterns"); !strings.Contains(page.TestID("empty"), "second session") {
		t.Errorf("%s", page.Text("main"))
	}
}
