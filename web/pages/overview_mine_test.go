package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// A member's Overview and its files have the member's own requests; an owner's have all.
func TestOverviewOfAMemberHasOnlyTheirFigures(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")
	member := owner.Colleague(tenants.Regular)
	_, theirs := spendTraffic(t, owner, member)
	for _, seen := range []struct {
		person         *webtest.Person
		requests, cost string
	}{{owner, "5", "$18.518505"}, {member, "2", "$7.407402"}} {
		page := seen.person.Get("/overview?by=key" + march())
		if got := page.TestID("requests"); got != seen.requests {
			t.Errorf("%s requests, want %s", got, seen.requests)
		}
		if cost := page.Find(`[data-testid="spent"]`).AttrOr("title", ""); cost != seen.cost {
			t.Errorf("%s is spent, want %s", cost, seen.cost)
		}
		if health := page.TestID("health"); !strings.Contains(health, " of "+seen.requests+" requests answered") {
			t.Errorf("health: %s", health)
		}
		isOwn := seen.person == member
		if page.Has(`[data-testid="mine"]`) != isOwn || strings.Contains(page.TestID("split"), "laptop") == isOwn || !strings.Contains(page.TestID("split"), "ci") {
			t.Errorf("by key, own %v: %s", isOwn, page.TestID("split"))
		}
		if strings.Contains(page.Find(`select[name="key"]`).Text(), "laptop") == isOwn {
			t.Errorf("the filter offers keys of others, own %v", isOwn)
		}
		if answers := page.TestID("answers"); !strings.Contains(answers, "gpt-5.6 Anthropic 2 50.0%") || strings.Contains(answers, "claude-opus-4-5") == isOwn {
			t.Errorf("answers: %s", answers)
		}
		for _, part := range []string{"split", "tokens", "money", "answers"} {
			file := seen.person.Get("/overview/data.csv?by=key&part=" + part + march())
			if file.Status != http.StatusOK || part == "split" && strings.Contains(file.HTML, "laptop") == isOwn {
				t.Errorf("file of %s, own %v: %d %s", part, isOwn, file.Status, file.HTML)
			}
		}
	}
	if page := member.Get("/overview?key=" + theirs.ID.String() + march()); page.TestID("requests") != "2" {
		t.Errorf("by their own key: %s", page.TestID("requests"))
	}
}

// What is broken stands first, with its remedy.
func TestHealthNamesTheBrokenThingAndItsRemedy(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")
	overviewRecord(t, owner, exchange(time.Now(), func(e *tenants.Exchange) {
		e.Answer.Attempts, e.Times.Duration, e.Times.TTFB = 1, 1400*time.Millisecond+e.Times.Overhead, 200*time.Millisecond+e.Times.Overhead
	}))
	if health := owner.Get("/overview").TestID("health"); !strings.Contains(health, "All is well: 100.0% of 1 request answered. Models take 1.4 s (p50) and 1.4 s (p95)") {
		t.Errorf("%s", health)
	}
	needy(t, owner)
	keys, err := owner.DB.ProviderKeys.ProviderKeys(t.Context(), owner.Workspace.ID)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	page := owner.Get("/overview")
	if health := page.TestID("health"); !strings.Contains(health, "1 thing is broken: Provider key anthropic-prod was rejected 14 times. 401 from Anthropic.") || !strings.Contains(health, "6.7% of 15 requests answered") {
		t.Errorf("%s", health)
	}
	if link := page.Find(`[data-testid="health"] a`); link.Text() != "Replace key" || link.AttrOr("href", "") != "/providers/"+keys[0].ID.String()+"/replace" {
		t.Errorf("%s leads to %s", link.Text(), link.AttrOr("href", ""))
	}
}
