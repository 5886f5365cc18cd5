package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/web/webtest"
)

func TestOnlyOperatorsReachTheirPage(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	operator, other := product.SignUp(t, "first"), product.SignUp(t, "second")
	below := "/operator/workspaces/" + other.Workspace.ID.String()

	for _, path := range []string{"/operator", "/operator/csv", "/operator/log/csv", below + "/suspend", below + "/resume"} {
		if page := operator.Get(path); page.Status != http.StatusOK {
			t.Errorf("%s as the operator: status %d", path, page.Status)
		}
		if page := other.Get(path); page.Status != http.StatusNotFound || strings.Contains(page.HTML, "first@example.com") {
			t.Errorf("%s as someone else: status %d", path, page.Status)
		}
	}
	for _, action := range []string{"/suspend", "/resume"} {
		if page := other.Post(below+action, "reason", "mine", "confirm", "second"); page.Status != http.StatusNotFound {
			t.Errorf("%s by someone else: status %d", action, page.Status)
		}
	}
	if operator.Get("/overview").Find(`a[href="/operator"]`).Length() == 0 || other.Get("/overview").Find(`a[href="/operator"]`).Length() != 0 {
		t.Error("the link is to stand in the operator's navigation alone")
	}
}

func TestSuspendedWorkspaceTellsItsMembersWhy(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	operator, other := product.SignUp(t, "first"), product.SignUp(t, "second")
	below := "/operator/workspaces/" + other.Workspace.ID.String()

	for field, form := range map[string][]string{
		"confirm": {"reason", "sends spam", "confirm", "first"}, "reason": {"reason", " ", "confirm", "second"},
	} {
		page := operator.Post(below+"/suspend", form...)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" || page.Find(`input[name="confirm"]`).AttrOr("value", "") != form[3] {
			t.Errorf("%s: status %d: %s", field, page.Status, page.Text("dialog"))
		}
	}
	page := operator.Post(below+"/suspend", "reason", "sends spam", "confirm", "second")
	if page.Status != http.StatusOK || !strings.Contains(page.TestID("workspaces"), "suspended") || !strings.Contains(page.TestID("log"), "sends spam") {
		t.Fatalf("status %d: %s", page.Status, page.Text("main"))
	}
	product.People.Forget() // as the notification does
	for _, path := range []string{"/overview", "/keys", "/sessions"} {
		if page := other.Get(path); page.Status != http.StatusForbidden || !strings.Contains(page.Text("main"), "sends spam") {
			t.Errorf("%s: status %d: %s", path, page.Status, page.Text("main"))
		}
	}
	for _, path := range []string{"/account", "/workspaces"} {
		if page := other.Get(path); page.Status != http.StatusOK {
			t.Errorf("%s of a suspended workspace: status %d", path, page.Status)
		}
	}
	if page := operator.Get("/overview"); page.Status != http.StatusOK {
		t.Errorf("another workspace: status %d", page.Status)
	}

	if page := operator.Post(below+"/resume", "reason", "mended", "confirm", "second"); page.Status != http.StatusOK || strings.Contains(page.TestID("workspaces"), "suspended") {
		t.Errorf("resumed: status %d: %s", page.Status, page.Text("main"))
	}
	product.People.Forget()
	if page := other.Get("/overview"); page.Status != http.StatusOK {
		t.Errorf("after it was resumed: status %d", page.Status)
	}
}

func TestWorkspacesAreSearched(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	operator := product.SignUp(t, "first")
	product.SignUp(t, "second")

	if list := operator.Get("/operator?q=SECOND").TestID("workspaces"); !strings.Contains(list, "second@example.com") || strings.Contains(list, "first@") {
		t.Errorf("found %s", list)
	}
	if page := operator.Get("/operator?q=nothing+such"); page.Find(`[data-testid="empty"]`).Length() != 1 {
		t.Error("nothing is found, and nothing says so")
	}
	if page := operator.Get("/operator?after=x"); page.Status != http.StatusNotFound {
		t.Errorf("an invalid cursor: status %d", page.Status)
	}
}
