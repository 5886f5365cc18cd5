package pages_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// E2: the list leads to the file of what was chosen, or of all that match.
func TestChosenSessionsAndAllThatMatchAreExported(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	ids := keep(t, person, kept{title: "one", client: "codex"}, kept{title: "two", client: "codex", ago: time.Minute}, kept{title: "three", client: "curl", ago: time.Hour})
	page := person.Get("/sessions?client=codex")
	if button := page.Find(`#chosen button[formaction="/sessions/export"]:not([name])`); button.Text() != "Export selected" {
		t.Errorf("the list offers %q", page.Text("#chosen"))
	}
	for path, want := range map[string]string{
		"/sessions/export?id=" + ids[0].String() + "&id=" + ids[2].String():           "/api/v1/sessions/export?id=" + ids[0].String() + "&id=" + ids[2].String(),
		page.Find(`[data-testid="export-all"]`).AttrOr("href", ""):                    "/api/v1/sessions/export?id=" + ids[0].String() + "&id=" + ids[1].String(),
		person.Get("/sessions").Find(`[data-testid="export-all"]`).AttrOr("href", ""): "/api/v1/sessions/export?id=" + ids[0].String() + "&id=" + ids[1].String() + "&id=" + ids[2].String(),
	} {
		if led := person.Direct(path); led.Status != http.StatusSeeOther || led.Header.Get("Location") != want {
			t.Errorf("%s: %d, leads to %s, want %s", path, led.Status, led.Header.Get("Location"), want)
		}
	}
	for _, path := range []string{"/sessions/export", "/sessions/export?id=x", "/sessions/export?all=yes&client=none"} {
		if none := person.Get(path); none.Status != http.StatusUnprocessableEntity || !strings.Contains(none.TestID("not-exported"), "Nothing was exported") {
			t.Errorf("%s: %d, %q", path, none.Status, none.TestID("not-exported"))
		}
	}
}

func TestExportOfAllThatMatchIsBounded(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	var many []kept
	for i := range 101 {
		many = append(many, kept{title: fmt.Sprint("session ", i), client: []string{"codex", "curl"}[min(i, 1)], ago: time.Duration(i) * time.Minute})
	}
	keep(t, person, many...)
	if page := person.Get("/sessions/export?all=yes"); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("not-exported"), "More than 100 sessions match") {
		t.Errorf("%d, %q", page.Status, page.TestID("not-exported"))
	}
	if led := person.Direct("/sessions/export?all=yes&client=curl"); led.Status != http.StatusSeeOther || strings.Count(led.Header.Get("Location"), "id=") != 100 {
		t.Errorf("a hundred: %d", led.Status)
	}
}

func TestWhatOneMayNotReadIsNotExported(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	ids := keep(t, person, kept{title: "one", client: "codex"})
	viewer, admin := person.Colleague(tenants.Viewer), blind(person)
	for _, path := range []string{"/sessions/export?all=yes", "/sessions/export?id=" + ids[0].String()} {
		if page := admin.Get(path); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("not-exported"), "You may not read all of these") {
			t.Errorf("%s: %d, %q", path, page.Status, page.TestID("not-exported"))
		}
	}
	if page := viewer.Get("/sessions"); page.Has(`[formaction="/sessions/export"]`) || page.Has(`[data-testid="export-all"]`) {
		t.Error("a viewer who may read nothing is offered an export")
	}
}

// What an export of all that matches answers tells nobody which titles there are that they may
// not read.
func TestExportOfAllThatMatchDoesNotTellOtherPeoplesTitles(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	keep(t, person, kept{title: "layoffs in spring"})
	viewer := person.Colleague(tenants.Viewer)
	known, unknown := viewer.Get("/sessions/export?all=yes&q=layoffs"), viewer.Get("/sessions/export?all=yes&q=zeppelins")
	if said := known.TestID("not-exported"); said == "" || said != unknown.TestID("not-exported") {
		t.Errorf("for a title that exists %q, for none %q", said, unknown.TestID("not-exported"))
	}
}
