package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// People score a session with a note and label it, and the list shows both and narrows to them.
func TestSessionIsScoredAndLabeled(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	b.ask(asked)
	path := "/sessions/" + b.Newest().ID.String()
	if page := b.Post(path+"/score", "score", "1", "note", "Found the bug <b>at once</b>."); page.Status != http.StatusOK || page.Find("#score-note").AttrOr("value", "") != "Found the bug <b>at once</b>." {
		t.Fatalf("status %d: %s", page.Status, page.TestID("judge"))
	}
	if page := b.Colleague(tenants.Admin).Get(path); !strings.Contains(page.TestID("score-note"), "Good, "+b.Email+": Found the bug <b>at once</b>.") {
		t.Errorf("a colleague reads %s", page.TestID("judge"))
	}
	page := b.Post(path+"/labels", "label", " refund bug ")
	if page.TestID("label") != "refund bug" || page.Find(`[data-testid="thumbs-up"]`).AttrOr("aria-pressed", "") != "true" || page.TestID("thumbs-up") != "Good 1" {
		t.Errorf("the session shows %q", page.TestID("judge"))
	}
	if wrong := b.Post(path+"/labels", "label", strings.Repeat("x", tenants.MaxLabel+1)); wrong.Status != http.StatusUnprocessableEntity || !strings.Contains(wrong.TestID("error-judge"), "Label must have 1 to 64 printable characters") {
		t.Errorf("status %d: %q", wrong.Status, wrong.TestID("error-judge"))
	}
	for query, want := range map[string]int{"label=refund+bug": 1, "label=other": 0, "score=up": 1, "score=down": 0} {
		list := b.Get("/sessions?show=single&" + query)
		if got := list.Find(`[data-testid="sessions"] a.ttl`).Length(); got != want || !list.Has(".find .chip") {
			t.Errorf("%s lists %d sessions, want %d", query, got, want)
		}
	}
	if viewer := b.Colleague(tenants.Viewer).Get(path); viewer.TestID("judge") != "" {
		t.Errorf("a viewer who may not read it sees %q", viewer.TestID("judge"))
	}
	b.Post(path+"/labels/remove", "label", "refund bug")
	if page := b.Post(path+"/score", "score", "0"); page.TestID("label") != "" || page.TestID("thumbs-up") != "Good 0" || page.TestID("score-note") != "" {
		t.Errorf("afterwards the session shows %q", page.TestID("judge"))
	}
}

// The chosen sessions become a data set.
func TestChosenSessionsBecomeADataSet(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	b.ask(asked)
	id := b.Newest().ID.String()
	if page := b.Get("/sessions?show=single"); page.Find(`[data-testid="data-set"]`).AttrOr("formaction", "") != "/sessions/export" {
		t.Error("the list offers no data set")
	}
	if page := b.Get("/sessions/export?format=jsonl&id=" + id); page.Path != "/api/v1/sessions/export?format=jsonl&id="+id {
		t.Errorf("it leads to %s", page.Path)
	}
}

// Messages have the time when they came, and answers what their request took.
func TestMessagesHaveClockTimes(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	const name = `{"model":"claude-sonnet-4-5","max_tokens":100,"metadata":{"user_id":"user_1_account__session_6f0c6f6e-52d0-4f0e-9d3c-0f3d3a7f2b11"},"messages":[{"role":"user","content":"One"}`
	first, _ := b.ask(name + `]}`)
	b.ask(name + `,{"role":"assistant","content":"Two"},{"role":"user","content":"Three"}]}`)
	change(t, b.Person, "UPDATE exchanges SET at = date_trunc('day', at) + interval '9 hours 2 minutes 3 seconds', duration_us = 4200000, cost_microusd = 20000, input_tokens = 10, cache_read_tokens = 90, cache_write_tokens = 0 WHERE id = $1", first)
	change(t, b.Person, "UPDATE archive_entries SET stored_at = date_trunc('day', stored_at) + interval '9 hours 3 minutes'")
	page := b.Get("/sessions/" + b.Newest().ID.String() + "?m=1")
	var times []string
	for _, node := range page.Find(`[data-testid="at"]`).EachIter() {
		times = append(times, strings.Join(strings.Fields(node.Text()), " "))
	}
	if len(times) != 3 || times[0] != "09:02:03" || times[1] != "09:02:07 · 4.2 s · $0.02 · 90.0% cached" {
		t.Errorf("the times are %q", times)
	}
	if answered := page.Find(`#pane [data-testid="answered"] a`).AttrOr("href", ""); answered != "/requests/"+first {
		t.Errorf("the answer's request is %q", answered)
	}
}
