package pages_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

func TestSettingsAreSavedAndShown(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	saved := person.Post("/settings", "time_zone", "Europe/Berlin", "managers_read", "own", "members_read", "all", "viewers_read", "all", "no_store", "yes",
		"redact", "email", "redact", "key", "end_users", "plain", "redact_names", " Ada King\r\n\r\nMia ")
	if saved.Path != "/settings?saved=yes" || !strings.Contains(saved.Text("main"), "The settings are saved") {
		t.Fatalf("saving led to %s: %s", saved.Path, saved.Text("main"))
	}
	kept, err := person.DB.Data.DataSettings(t.Context(), person.Workspace.ID)
	want := tenants.DataSettings{TimeZone: "Europe/Berlin", NoStore: true, Text: tenants.TextPolicy{Managers: "own", Members: "all", Viewers: "all"},
		Redact: tenants.Redaction{Kinds: []tenants.RedactionKind{"email", "key"}, Names: []string{"Ada King", "Mia"}}, EndUsers: tenants.EndUsersPlain}
	if err != nil || !reflect.DeepEqual(kept, want) {
		t.Errorf("kept %+v, %v", kept, err)
	}
	page := person.Get("/settings")
	for id, value := range map[string]string{"#field-managers_read": "own", "#field-members_read": "all", "#field-viewers_read": "all", "#field-end_users": "plain"} {
		if got := page.Find(id+" option[selected]").AttrOr("value", ""); got != value {
			t.Errorf("%s shows %q", id, got)
		}
	}
	if page.Find("#field-time_zone").AttrOr("value", "") != "Europe/Berlin" || !page.Has("#field-no_store[checked]") ||
		page.Find("#redact input[checked]").Length() != 2 || !page.Has("#field-redact-key[checked]") || page.Find("#field-redact_names").Text() != "Ada King\nMia" {
		t.Error("the form does not show what was saved")
	}
	if page.Has(`a[href="/api/v1/export"]`) {
		t.Error("who may not read every session is offered the export")
	}
}

func TestInvalidFormIsExplainedAtItsFieldAndKeepsInput(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Post("/settings", "time_zone", "Mars/Olympus", "managers_read", "all", "members_read", "all", "viewers_read", "none")
	if page.Status != http.StatusUnprocessableEntity || page.TestID("error-time_zone") == "" || page.Find("#field-time_zone").AttrOr("value", "") != "Mars/Olympus" {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
	page = person.Post("/settings", "time_zone", "UTC", "managers_read", "all", "members_read", "all", "viewers_read", "none", "redact", "card", "redact_names", "A")
	if page.Status != http.StatusUnprocessableEntity || page.TestID("error-redact_names") == "" || page.Find("#field-redact_names").Text() != "A" || !page.Has("#field-redact-card[checked]") {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
	for _, days := range []string{"soon", "-1", "1.5", "99999"} {
		page := person.Post("/settings/retention", "days", days)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-days") == "" || page.Find("#field-days").AttrOr("value", "") != days {
			t.Errorf("%s: status %d", days, page.Status)
		}
	}
	for typed, want := range map[string]int{"30": 30, "": 0} {
		if page := person.Post("/settings/retention", "days", typed); page.Path != "/settings?saved=yes" {
			t.Errorf("%q led to %s", typed, page.Path)
		}
		if kept, err := person.DB.Data.Retention(t.Context(), person.Workspace.ID); err != nil || kept.Days != want {
			t.Errorf("%q: kept %+v, %v", typed, kept, err)
		}
	}
}

// S31
func TestAWorkspaceIsDeletedWithItsNameAndThePassword(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if page := person.Get("/settings/delete"); !page.Has("#dlg-delete") {
		t.Fatalf("nothing is asked: %s", page.Text("main"))
	}
	for field, typed := range map[string][2]string{"confirm": {"another", webtest.Password}, "password": {"northbeam", "wrong password"}} {
		page := person.Post("/settings/delete", "confirm", typed[0], "password", typed[1])
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("error-"+field), "Nothing was deleted") {
			t.Errorf("%s: status %d, %s", field, page.Status, page.Text("main"))
		}
		if strings.Contains(page.HTML, typed[1]) {
			t.Error("the page shows the password")
		}
	}
	if memberships, err := person.DB.Workspaces.Memberships(t.Context(), person.User.ID); err != nil || len(memberships) != 1 {
		t.Fatalf("%d memberships, %v", len(memberships), err)
	}
	person.Post("/settings/delete", "confirm", "northbeam", "password", webtest.Password)
	memberships, err := person.DB.Workspaces.Memberships(t.Context(), person.User.ID)
	if err != nil || len(memberships) != 0 {
		t.Errorf("%d memberships, %v", len(memberships), err)
	}
	if closed, err := person.DB.Deletion.ClosedWorkspaces(t.Context()); err != nil || len(closed) != 1 {
		t.Errorf("deleted are %v, %v", closed, err)
	}
}

func TestOnlyOwnersAreOfferedTheDeletion(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for role, want := range map[tenants.Role]bool{tenants.Owner: true, tenants.Admin: false} {
		page := person.As(role).Get("/settings")
		if page.Status != http.StatusOK || page.Has(`a[href="/settings/delete"]`) != want || !page.Has(`a[href="/api/v1/export"]`) {
			t.Errorf("%s: status %d", role, page.Status)
		}
	}
	if page := person.As(tenants.Regular).Get("/settings"); page.Status != http.StatusForbidden {
		t.Errorf("member: status %d", page.Status)
	}
}
