package pages_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

func TestEveryChangeIsShownWithWhoMadeItBeforeAndAfter(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.Post("/settings/retention", "days", "30")
	person.Post("/settings/retention", "days", "7")
	page := person.Get("/audit?action=retention")
	list := page.TestID("audit")
	for _, part := range []string{person.Email + " set how long sessions are kept days: 30 → 7", person.Email, "30", "7", "→"} {
		if !strings.Contains(list, part) {
			t.Errorf("the list does not say %q: %s", part, list)
		}
	}
	if rows := page.Find(`[data-testid="audit"] > li`).Length(); rows != 2 {
		t.Errorf("%d rows", rows)
	}
	if first := page.Find(`[data-testid="audit"] > li`).First(); first.Find("del").Text() != "30" || first.Find("ins").Text() != "7" {
		t.Errorf("the newest says %s", first.Text())
	}
	if csv := page.Find(`a[download]`).AttrOr("href", ""); csv != "/api/v1/audit.csv?action=retention" {
		t.Errorf("the download is %s", csv)
	}
}

// Each entry is one sentence, whose details open. Logins are left out, of the download too,
// unless the list is asked for them.
func TestEntriesAreSentencesAndLoginsAreLeftOut(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.Post("/keys", "name", "laptop", "expiry", "")
	person.Post("/members/invite", "email", "new@example.com", "role", "member")
	colleague := person.Colleague(tenants.Viewer)
	person.Post("/members/"+colleague.User.ID.String()+"/role", "role", "admin")
	page := person.Get("/audit")
	var said []string
	page.Find(`[data-testid="audit"] > li`).Each(func(_ int, row *goquery.Selection) {
		said = append(said, strings.Join(strings.Fields(row.Find("summary .deed").Text()), " "))
		if row.Find("details[open]").Length() != 0 || row.Find("details > dl time").Length() != 1 {
			t.Errorf("an entry does not open: %s", row.Text())
		}
	})
	for _, want := range []string{
		person.Email + " created the API key laptop", person.Email + " invited new@example.com",
		person.Email + " changed the role of " + colleague.Email + " role: viewer → admin",
	} {
		if !slices.Contains(said, want) {
			t.Errorf("no entry says %q: %q", want, said)
		}
	}
	has := func(path string) bool { return strings.Contains(person.Get(path).TestID("audit"), "logged in") }
	if has("/audit") || !has("/audit?action=login") || !has("/audit?action=all") {
		t.Errorf("logins: by default %v, asked for %v, with everything %v", has("/audit"), has("/audit?action=login"), has("/audit?action=all"))
	}
	if csv := page.Find(`a[download]`).AttrOr("href", ""); csv != "/api/v1/audit.csv?except=login" {
		t.Errorf("the download is %s", csv)
	}
}

func TestTheListIsNarrowedAndSaysWhenNothingMatches(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.Post("/settings/retention", "days", "30")
	for query, want := range map[string]int{
		"actor=NORTHBEAM&action=retention": 1, "actor=nobody": 0, "action=retention&from=2020-01-01": 1, "to=2020-01-01": 0,
	} {
		page := person.Get("/audit?" + query)
		if rows := page.Find(`[data-testid="audit"] > li`).Length(); rows != want {
			t.Errorf("%s: %d rows, want %d", query, rows, want)
		}
		if empty := strings.Contains(page.TestID("empty"), "No entry"); empty != (want == 0) {
			t.Errorf("%s: says %q", query, page.TestID("empty"))
		}
	}
	wrong := person.Get("/audit?from=yesterday&actor=ann")
	if wrong.Status != http.StatusUnprocessableEntity || wrong.TestID("error-from") == "" || wrong.Find("#field-actor").AttrOr("value", "") != "ann" {
		t.Errorf("status %d: %s", wrong.Status, wrong.Text("main"))
	}
	if page := person.Get("/audit?cursor=x"); page.Status != http.StatusBadRequest {
		t.Errorf("status %d", page.Status)
	}
}

func TestTheListIsPagedByItsLastEntry(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for days := 1; days <= 60; days++ {
		if err := person.DB.Data.SetRetention(t.Context(), person.Workspace.ID, tenants.Retention{Days: days}); err != nil {
			t.Fatal(err)
		}
	}
	var seen []string
	page := person.Get("/audit?action=retention.set")
	for {
		for _, row := range page.Find(`[data-testid="audit"] ins`).EachIter() {
			seen = append(seen, row.Text())
		}
		older, more := page.Find(`[data-testid="older"]`).Attr("href")
		if !more {
			break
		}
		page = person.Get(older)
	}
	if len(seen) != 60 || seen[0] != "60" || seen[59] != "1" {
		t.Errorf("paged through %s", fmt.Sprint(seen))
	}
}

func TestTheListIsForOwnersAndAdmins(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for role, want := range map[tenants.Role]int{tenants.Admin: http.StatusOK, tenants.Regular: http.StatusForbidden} {
		page := person.As(role).Get("/audit")
		if page.Status != want || page.Has(`nav a[href="/audit"]`) != (want == http.StatusOK) {
			t.Errorf("%s: status %d", role, page.Status)
		}
	}
}
