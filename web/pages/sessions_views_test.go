package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// A person saves what the list is narrowed to, and gets back to it.
func TestViewIsSavedOpenedReplacedAndDeleted(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	sessionsRecord(t, person, "Refactor webhooks", "claude-code", time.Now(), 1)
	sessionsRecord(t, person, "Port the importer", "codex", time.Now(), 1)

	asked := person.Get(person.Get("/sessions?client=codex&cursor=").Find(`[data-testid="views"]`).AttrOr("href", ""))
	form := asked.Find("#save-view")
	if !strings.Contains(asked.Text("#save-view"), "client: codex") || form.AttrOr("action", "") != "/sessions/views?client=codex" {
		t.Fatalf("asked for %q at %q", asked.Text("#save-view"), form.AttrOr("action", ""))
	}
	saved := person.Post(form.AttrOr("action", ""), "name", " Only codex ")
	if saved.Path != "/sessions?client=codex&view=saved" || !strings.Contains(saved.TestID("view-done"), "View saved") {
		t.Errorf("saved: %d, %s, %q", saved.Status, saved.Path, saved.TestID("view-done"))
	}
	link := person.Get("/sessions").Find("#parts a.view")
	if link.Text() != "Only codex" || link.AttrOr("aria-current", "") != "" {
		t.Fatalf("the list links to %q", link.Text())
	}
	opened := person.Get(link.AttrOr("href", ""))
	if row := opened.TestID("sessions"); !strings.Contains(row, "importer") || strings.Contains(row, "webhooks") || !opened.Has(`#parts a.view[aria-current]`) {
		t.Errorf("opened it shows %q", row)
	}

	replace := person.Get("/sessions/views?client=claude-code&range=7d").Find(`[data-testid="saved-views"] form`).First()
	if name := replace.Find(`[name="name"]`).AttrOr("value", ""); name != "Only codex" {
		t.Fatalf("replaces %q", name)
	}
	replaced := person.Post(replace.AttrOr("action", ""), "name", "Only codex", "replace", "yes")
	if !strings.Contains(replaced.TestID("view-done"), "View replaced") || replaced.Find("#parts a.view").AttrOr("href", "") != "/sessions?client=claude-code&range=7d" {
		t.Errorf("replaced: %q, it leads to %s", replaced.TestID("view-done"), replaced.Find("#parts a.view").AttrOr("href", ""))
	}
	remove := person.Get("/sessions/views?q=a").Find(`[data-testid="saved-views"] form[action*="/delete"]`).AttrOr("action", "")
	deleted := person.Post(remove)
	if deleted.Path != "/sessions?q=a&view=deleted" || deleted.Has("#parts a.view") || !strings.Contains(deleted.TestID("view-done"), "View deleted") {
		t.Errorf("deleted: %s, %q", deleted.Path, deleted.TestID("view-done"))
	}
	if again := person.Post(remove); again.Status != http.StatusNotFound {
		t.Errorf("deleted twice: %d", again.Status)
	}
}

func TestViewThatCannotBeSavedKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	sessionsRecord(t, person, "Refactor webhooks", "claude-code", time.Now(), 1)
	long := strings.Repeat("a", 61)
	for path, want := range map[string]struct{ typed, told string }{
		"?client=codex": {long, "Name must have 1 to 60 characters; it has 61."},
		"?q=webhooks":   {"", "Name must have 1 to 60 characters."},
	} {
		page := person.Post("/sessions/views"+path, "name", want.typed)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-name") != want.told || page.Find("#field-name").AttrOr("value", "") != want.typed ||
			page.Find("#save-view").AttrOr("action", "") != "/sessions/views"+path {
			t.Errorf("%s: %d, %q, typed %q", path, page.Status, page.TestID("error-name"), page.Find("#field-name").AttrOr("value", ""))
		}
	}
	for path, want := range map[string]string{
		"":            "There is nothing to save: narrow the list first.",
		"?range=1y":   "Range must be one of those that the list offers.",
		"?show=gone":  "Show must be conversations, compressed, bridged, problems or single",
		"?key=laptop": "Key is no id of an API key",
		"?from=x":     "Range must have two moments, the first before the second.",
	} {
		page := person.Post("/sessions/views"+path, "name", "mine")
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("view-refused"), want) {
			t.Errorf("%s: %d, %q", path, page.Status, page.TestID("view-refused"))
		}
	}
	if page := person.Get("/sessions"); page.Has("a.view") {
		t.Errorf("saved all the same: %q", page.Text("#parts"))
	}
}

// What a view asks for may be gone with the version that could show it.
func TestViewWhoseFiltersAreGoneSaysSo(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	sessionsRecord(t, person, "Refactor webhooks", "claude-code", time.Now(), 1)
	for name, query := range map[string]string{"old range": "range=1y", "old name": "color=red", "no query": "a=%zz"} {
		if _, err := person.DB.Views.SaveView(t.Context(), person.Workspace.ID, person.User.ID, tenants.View{List: tenants.SessionViews, Name: name, Query: query}); err != nil {
			t.Fatal(err)
		}
	}
	page := person.Get("/sessions")
	if page.Find("#parts .lost").Length() != 3 || !strings.Contains(page.Text("#parts"), "does not work") || !strings.Contains(page.TestID("sessions"), "webhooks") {
		t.Errorf("the list shows %q", page.Text("#parts"))
	}
	told := person.Get(page.Find("#parts .lost").AttrOr("href", "")).TestID("saved-views")
	for _, want := range []string{"Range must be one of those that the list offers.", "The list has not all of them any more.", "They cannot be read.", "Replace or delete it"} {
		if !strings.Contains(told, want) {
			t.Errorf("it is not told %q: %s", want, told)
		}
	}
}

func TestNobodySeesTheViewsOfAnother(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	sessionsRecord(t, person, "Refactor webhooks", "claude-code", time.Now(), 1)
	person.Post("/sessions/views?client=codex", "name", "Only codex")
	colleague := person.Colleague(tenants.Viewer)

	if page := colleague.Get("/sessions/views"); strings.Contains(page.HTML, "Only codex") {
		t.Errorf("a colleague sees %q", page.Text("#parts"))
	}
	remove := person.Get("/sessions/views").Find(`[data-testid="saved-views"] form[action*="/delete"]`).AttrOr("action", "")
	if page := colleague.Post(remove); page.Status != http.StatusNotFound {
		t.Errorf("a colleague deletes it: %d", page.Status)
	}
	if saved := colleague.Post("/sessions/views?q=a", "name", "Only codex"); !saved.Has("#parts a.view") {
		t.Errorf("a viewer saves none: %d", saved.Status)
	}
	if link := person.Get("/sessions").Find("#parts a.view").AttrOr("href", ""); link != "/sessions?client=codex" {
		t.Errorf("theirs leads to %s", link)
	}
}

func TestRangeOfOnesOwnIsInTheReadersZone(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	sessionsRecord(t, person, "Before", "codex", time.Date(2026, 3, 1, 19, 0, 0, 0, time.UTC), 1)
	sessionsRecord(t, person, "Within", "codex", time.Date(2026, 3, 1, 20, 30, 0, 0, time.UTC), 1)
	sessionsRecord(t, person, "After", "codex", time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC), 1)

	cookies := []string{"zone=Asia%2FTokyo"}
	for _, cookie := range person.Cookies() {
		cookies = append(cookies, cookie.Name+"="+cookie.Value)
	}
	page := person.Get("/sessions?client=codex&from=2026-03-02T05:00&to=2026-03-02T06:00", "Cookie", strings.Join(cookies, "; "))
	rows := page.TestID("sessions")
	if !strings.Contains(rows, "Within") || strings.Contains(rows, "Before") || strings.Contains(rows, "After") {
		t.Errorf("the range shows %q", rows)
	}
	if words := page.Text("#narrow summary"); words != "2 Mar 05:00 to 2 Mar 06:00" || !strings.Contains(page.TestID("range"), "Times in Asia/Tokyo") {
		t.Errorf("the range is called %q", words)
	}
	if link := page.Find(`#narrow a[download]`).AttrOr("href", ""); link != "/sessions/csv?client=codex&from=2026-03-01T20%3A00%3A00Z&to=2026-03-01T21%3A00%3A00Z" {
		t.Errorf("the file is of %s", link)
	}
	if link := page.Find(`#narrow .seg a`).First().AttrOr("href", ""); link != "/sessions?client=codex&range=1h" {
		t.Errorf("another range leads to %s", link)
	}
	if none := person.Get("/sessions?from=2026-04-01T00:00&to=2026-04-02T00:00"); !strings.Contains(none.TestID("empty"), "none of them from 1 Apr 00:00 to 2 Apr 00:00") {
		t.Errorf("nothing: %q", none.TestID("empty"))
	}
}

func TestARangeThatIsNoneIsSaidAtItsField(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	sessionsRecord(t, person, "Refactor webhooks", "claude-code", time.Now(), 1)
	for query, want := range map[string]string{
		"from=moon&to=2026-03-01T00:00":             "From must be a day and a time. Choose both",
		"from=2026-03-01T00:00&to=2026-02-01T00:00": "To must be after From. Choose a later end",
	} {
		page := person.Get("/sessions?" + query)
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("range"), want) || !page.Has(`details[open] [aria-invalid="true"]`) ||
			!strings.Contains(page.TestID("sessions"), "webhooks") {
			t.Errorf("%s: %d, %q", query, page.Status, page.TestID("range"))
		}
		if typed := page.Find(`[data-testid="range"] [name="from"]`).AttrOr("value", ""); !strings.HasPrefix(query, "from="+typed) {
			t.Errorf("%s: what was typed became %q", query, typed)
		}
	}
}
