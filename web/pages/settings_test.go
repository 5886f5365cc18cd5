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

func TestBudgetsAreSetShownAndRemoved(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	member := "member:" + person.User.ID.String()
	for _, typed := range [][]string{
		{"whose", "workspace", "budget_day_usd", "1,000", "budget_month_usd", ""}, {"whose", "project", "project", " search ", "budget_month_usd", "7.5"},
		{"whose", "end_user", "requests_per_minute", "6", "budget_day_usd", "0.5"}, {"whose", member, "budget_month_usd", "10"}, {"whose", member, "budget_month_usd", "20"},
	} {
		if page := person.Post("/settings/budgets", typed...); page.Path != "/settings?saved=yes" {
			t.Fatalf("%v led to %s: %s", typed, page.Path, page.Text("#budgets"))
		}
	}
	page := person.Get("/settings")
	table := page.TestID("budgets")
	for _, want := range []string{"Workspace $0.00 of $1,000.00, 0 %", "Project search – $0.00 of $7.50, 0 %", "Each end user $0.50 – 6 requests", person.User.Email + " – $0.00 of $20.00, 0 %"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in %s", want, table)
		}
	}
	person.Post("/settings/budgets", "whose", "project", "project", "search")
	if kept, err := person.DB.Data.Budgets(t.Context(), person.Workspace.ID); err != nil || len(kept) != 3 {
		t.Errorf("kept %+v, %v", kept, err)
	}
	for field, typed := range map[string][]string{
		"whose": {"whose", "team"}, "project": {"whose", "project", "budget_day_usd", "1"}, "budget_day_usd": {"whose", "workspace", "budget_day_usd", "lots"},
		"budget_month_usd": {"whose", "workspace", "budget_month_usd", "-2"}, "requests_per_minute": {"whose", "workspace", "requests_per_minute", "3"}, "tokens_per_minute": {"whose", "end_user", "tokens_per_minute", "1.5"},
	} {
		if page := person.Post("/settings/budgets", typed...); page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" {
			t.Errorf("%v: status %d, nothing at %s: %s", typed, page.Status, field, page.Text("#budgets form:last-child"))
		}
	}
}

func TestPricesOfModelsAreSetShownAndRemoved(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for _, typed := range [][]string{
		{"model", " house/model ", "input", "3", "output", "15", "cache_read", "0.3"}, {"model", "house/model", "input", "2.5", "output", "15"}, {"model", "local", "input", "0", "output", "0"},
	} {
		if page := person.Post("/settings/prices", typed...); page.Path != "/settings?saved=yes" {
			t.Fatalf("%v led to %s: %s", typed, page.Path, page.Text("#prices"))
		}
	}
	if table := person.Get("/settings").TestID("prices"); !strings.Contains(table, "house/model every key $2.5 $15 – – –") || !strings.Contains(table, "local every key free") {
		t.Errorf("shown: %s", table)
	}
	person.Post("/settings/prices/remove", "model", "local", "provider_key_id", "00000000-0000-0000-0000-000000000000")
	if kept, err := person.DB.Data.ModelPrices(t.Context(), person.Workspace.ID); err != nil || len(kept) != 1 || kept[0].Input != 2.5 {
		t.Errorf("kept %+v, %v", kept, err)
	}
	for field, typed := range map[string][]string{
		"model": {"input", "1", "output", "1"}, "input": {"model", "m", "output", "1"}, "output": {"model", "m", "input", "1", "output", "NaN"}, "cache_read": {"model", "m", "input", "1", "output", "1", "cache_read", "2"},
		"cache_write_5m": {"model", "m", "input", "1", "output", "1", "cache_write_5m", "cheap"}, "provider_key_id": {"model", "m", "input", "1", "output", "1", "provider_key_id", "3f2b8a4e-0000-4000-8000-000000000000"},
	} {
		if page := person.Post("/settings/prices", typed...); page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" {
			t.Errorf("%v: status %d, nothing at %s: %s", typed, page.Status, field, page.Text("#prices form:last-child"))
		}
	}
}

func TestLimitsOfModelsAreSetShownAndRemoved(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Post("/settings/limits", "limit_model", " house/model ", "output_tokens", "8,000")
	if page.Path != "/settings?saved=yes" {
		t.Fatalf("led to %s: %s", page.Path, page.Text("#limits"))
	}
	person.Post("/settings/limits", "limit_model", "house/model", "output_tokens", "4000")
	if table := person.Get("/settings").TestID("limits"); !strings.Contains(table, "house/model every key – 4,000") {
		t.Errorf("shown: %s", table)
	}
	for field, typed := range map[string][]string{
		"limit_model": {"output_tokens", "1"}, "window_tokens": {"limit_model", "m"}, "output_tokens": {"limit_model", "m", "output_tokens", "1.5"},
		"limit_key": {"limit_model", "m", "window_tokens", "32000"},
	} {
		if page := person.Post("/settings/limits", typed...); page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" {
			t.Errorf("%v: status %d, nothing at %s: %s", typed, page.Status, field, page.Text("#limits form:last-child"))
		}
	}
	person.Post("/settings/limits/remove", "model", "house/model", "provider_key_id", "00000000-0000-0000-0000-000000000000")
	if kept, err := person.DB.Data.ModelLimits(t.Context(), person.Workspace.ID); err != nil || len(kept) != 0 {
		t.Errorf("kept %+v, %v", kept, err)
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
