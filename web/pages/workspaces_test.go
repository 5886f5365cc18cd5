package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

func TestSwitcherLeadsToAnotherWorkspaceAndBack(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "first")

	if page := person.Post("/workspaces", "workspace", "second"); page.Path != "/overview" || page.Text(".wsw b") != "second" {
		t.Fatalf("created at %s in %s", page.Path, page.Text(".wsw b"))
	}
	other := person.Get("/keys").Find(`.switch form[action$="/enter"]`)
	if other.Length() != 1 || strings.TrimSpace(other.Find(".grow").Text()) != "first" {
		t.Fatalf("the switcher offers %q", other.Text())
	}
	if page := person.Post(other.AttrOr("action", "")); page.Path != "/overview" || page.Text(".wsw b") != "first" {
		t.Errorf("switched to %s in %s", page.Path, page.Text(".wsw b"))
	}
	if more := person.Get("/more"); more.Find(`main form[action$="/enter"]`).Length() != 1 || !more.Has(`main a[href="/workspaces/new"]`) {
		t.Error("a phone has no way to the other workspace")
	}
	if list := person.Get("/workspaces").TestID("workspaces"); !strings.Contains(list, "first") || !strings.Contains(list, "second") {
		t.Errorf("the list says %s", list)
	}
}

// S3
func TestNobodyEntersAWorkspaceTheyDoNotBelongTo(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	ant, zebra := product.SignUp(t, "ant"), product.SignUp(t, "zebra")

	for _, id := range []string{zebra.Workspace.ID.String(), webtest.Nobody(), "x"} {
		if page := ant.Post("/workspaces/" + id + "/enter"); page.Status != http.StatusNotFound {
			t.Errorf("%s: status %d", id, page.Status)
		}
	}
	if page := ant.Get("/overview"); page.Text(".wsw b") != "ant" {
		t.Errorf("ant is in %s", page.Text(".wsw b"))
	}
}

func TestRenamedWorkspaceIsCalledThatEverywhere(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")

	if page := owner.Post("/workspaces/rename", "workspace", strings.Repeat("x", 81)); page.Status != http.StatusUnprocessableEntity || page.TestID("error-workspace") == "" {
		t.Errorf("too long a name: %d", page.Status)
	}
	if page := owner.Post("/workspaces/rename", "workspace", "Southbeam"); page.Path != "/workspaces" || page.Text(".wsw b") != "Southbeam" {
		t.Errorf("renamed at %s to %s", page.Path, page.Text(".wsw b"))
	}
}

func TestLeavingAsksForTheNameAndForAnOwner(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")

	if page := owner.Post("/workspaces/leave", "confirm", "x"); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("without the name: %d", page.Status)
	}
	if page := owner.Post("/workspaces/leave", "confirm", "northbeam"); page.Status != http.StatusConflict || !strings.Contains(page.TestID("error-confirm"), "only owner") {
		t.Errorf("the only owner: %d, %s", page.Status, page.TestID("error-confirm"))
	}
	owner.Colleague(tenants.Owner)
	if page := owner.Post("/workspaces/leave", "confirm", "northbeam"); page.Path != "/workspaces/new" || page.TestID("no-workspace") == "" {
		t.Errorf("one of two owners is led to %s with %d", page.Path, page.Status)
	}
	if page := owner.Post("/logout"); page.Path != "/login" {
		t.Errorf("logging out led to %s", page.Path)
	}
}

func TestNewWorkspaceCompressesAsItsCreatorChose(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "first")
	form := person.Get("/workspaces/new")
	if form.Find(`select[name="trigger"] option`).Length() != 2 || form.Find(`select[name="trigger"] option[selected]`).AttrOr("value", "") != "window" {
		t.Error("the form does not offer both triggers, the window first")
	}

	for trigger, want := range map[string]string{"break-even": "break-even", "window": "window", "": "window", "other": "window"} {
		person.Post("/workspaces", "workspace", "with "+trigger, "trigger", trigger)
		if got := person.Get("/pipeline").Find(`input[name="ipc.trigger"][checked]`).AttrOr("value", ""); got != want {
			t.Errorf("%q: the pipeline says %q", trigger, got)
		}
	}
}
