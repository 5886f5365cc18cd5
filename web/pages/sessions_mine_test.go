package pages_test

import (
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// A member begins with the conversations of their own API keys; other people's are one tab away. Everyone
// else begins with all.
func TestMemberBeginsWithTheirOwnSessions(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Post("/keys", "name", "laptop", "expiry", "")
	keys, err := product.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), person.Workspace.ID)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	keep(t, person, kept{title: "my own", key: keys[0].ID}, kept{title: "another's"})

	if got := titles(person.Get("/sessions")); got != "another's, my own" {
		t.Errorf("an owner begins with %q", got)
	}
	if got := titles(person.Get("/sessions?show=mine")); got != "my own" {
		t.Errorf("the owner's own are %q", got)
	}
	if file := person.Get("/sessions/csv?show=mine").HTML; !strings.Contains(file, "my own") || strings.Contains(file, "another's") {
		t.Errorf("the owner's own as a file: %s", file)
	}
	member := person.As(tenants.Regular)
	page := member.Get("/sessions")
	if got := titles(page); got != "my own" || page.Text(`#parts [aria-current]`) != "Mine 1" {
		t.Errorf("a member begins with %q, at %q", got, page.Text(`#parts [aria-current]`))
	}
	if rows := member.Get("/sessions?show=conversations").Find("main tbody tr").Length(); rows != 1 {
		t.Errorf("a member sees %d conversations, of which one is theirs", rows)
	}
	if rows := member.Get("/sessions?client=claude-code&range=30d").Find(`#parts [aria-current]`).Text(); strings.Contains(rows, "Mine") {
		t.Error("a link to some sessions leads to fewer of them")
	}
	colleague := person.Colleague(tenants.Regular)
	if empty := colleague.Get("/sessions").TestID("empty"); !strings.Contains(empty, "No sessions yet") || strings.Contains(empty, "filters") {
		t.Errorf("a member without an API key reads %q", empty)
	}
}

// With no filter set, the page does not say that filters match nothing.
func TestListWithoutFiltersDoesNotSpeakOfFilters(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	keep(t, person, kept{title: "a single call"})
	change(t, person, "UPDATE sessions SET name = '', continued = false")
	page := person.Get("/sessions")
	empty := page.TestID("empty")
	if strings.Contains(empty, "filters") || strings.Contains(empty, "No matches") || !strings.Contains(empty, "only single calls") {
		t.Errorf("with single calls only the page says %q", empty)
	}
	if link := page.Find(`[data-testid="single"]`).AttrOr("href", ""); titles(person.Get(link)) != "a single call" {
		t.Errorf("the single calls are not at %q", link)
	}
}
