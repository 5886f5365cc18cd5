package pages_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// A search shows whose session it is, when, for which project and at what cost, with the lines that match.
func TestFoundSessionsSayWhoseAndWhenAndWhy(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, 100_000), "laptop")
	ask(person, secret, "Begin. Refunds of split orders <b>round</b> each part on its own")
	ask(person, secret, "Refunds are late on Mondays")
	indexed(t, person)
	change(t, person, "UPDATE sessions SET project = 'shop', cost_microusd = 490000 WHERE title LIKE 'Begin%'")

	page := person.Get("/sessions?q=" + url.QueryEscape("refunds round"))
	groups := page.Find(`[data-testid="hits"] > ul > li`)
	if groups.Length() != 2 || page.TestID("matches") != "2 sessions, 2 messages" {
		t.Fatalf("%d sessions, %q", groups.Length(), page.TestID("matches"))
	}
	first := strings.Join(strings.Fields(groups.First().Text()), " ")
	for _, want := range []string{person.Email, "shop", "$0.49", "Claude Code", "1 matching message", "<b>round</b>"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first session does not say %q: %s", want, first)
		}
	}
	if marked := groups.First().Find("mark").First().Text(); !strings.EqualFold(marked, "refunds") {
		t.Errorf("marked is %q", marked)
	}
	if page := person.Get("/sessions?project=shop&q=refunds"); page.Find(`[data-testid="hits"] > ul > li`).Length() != 1 {
		t.Error("the filter of the address does not hold for messages")
	}
}

// Words about time and people narrow the search, and each can be removed.
func TestWordsOfASearchAreUnderstood(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	double := webtest.Provider(t, 100_000)
	person.Connect(double, "laptop")
	_, secret := newKey(t, person, "mine")
	member := person.Colleague(tenants.Regular)
	_, ownSecret := newKey(t, member, "own")
	ask(person, secret, "Begin. The marmots whistle near the quarry")
	ask(member, ownSecret, "Start. Count the marmots below the glacier")
	indexed(t, person)

	chips := func(page webtest.Page) (texts []string, paths []string) {
		for _, node := range page.Find(`[data-testid="understood"]`).EachIter() {
			texts = append(texts, strings.TrimSpace(node.Text()))
			paths = append(paths, node.Find("a").AttrOr("href", ""))
		}
		return texts, paths
	}
	for query, want := range map[string]struct {
		chips, found string
	}{
		"marmots today":          {"today", "2 sessions, 2 messages"},
		"marmots last month":     {"last month", ""},
		"my sessions on marmots": {"my sessions", "1 session, 1 message"},
		"marmots of mine today":  {"today mine", "1 session, 1 message"},
		`marmots "today"`:        {"", "2 sessions, 2 messages"},
	} {
		page := person.Get("/sessions?q=" + url.QueryEscape(query))
		texts, paths := chips(page)
		words := make([]string, len(texts))
		for i := range texts {
			words[i], _, _ = strings.Cut(texts[i], ":")
		}
		if got := strings.Join(words, " "); got != want.chips || page.TestID("matches") != want.found {
			t.Errorf("%q is understood as %q and finds %q", query, got, page.TestID("matches"))
		}
		for _, path := range paths {
			texts, _ := chips(person.Get(path))
			if len(texts) != len(paths)-1 {
				t.Errorf("%q: %s leaves %q", query, path, texts)
			}
		}
	}
	if _, paths := chips(person.Get("/sessions?q=" + url.QueryEscape("marmots last month"))); len(paths) != 1 || person.Get(paths[0]).TestID("matches") != "2 sessions, 2 messages" {
		t.Errorf("without the time nothing is found: %q", paths)
	}
	if page := member.Get("/sessions?show=mine&q=marmots"); page.TestID("matches") != "1 session, 1 message" || page.Find(`[data-testid="understood"]`).Length() != 1 {
		t.Errorf("of a member's own sessions: %q", page.Text("#list"))
	}
}

// Among 10,000 sessions, the one of last week that fixed something is typed once and clicked once.
func TestSessionOfLastWeekIsFoundAmongTenThousand(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, 100_000), "laptop")
	subjects := []string{"Look at the importer", "Explain the invoice totals", "Rename the report", "Fix the flaky login", "Round the refund of a split order once, on the sum"}
	for i, subject := range subjects {
		ask(person, secret, fmt.Sprintf("Task %d. %s", i, subject))
	}
	ask(person, secret, "Task 9. Round the refund of a gift card, on the sum")
	indexed(t, person)
	change(t, person, `INSERT INTO sessions (workspace_id, id, api_key_id, format, name, source, upstream, title, client, model, started_at, last_at)
		SELECT workspace_id, gen_random_uuid(), api_key_id, format, 'made ' || n, source, upstream, 'Round the totals of order ' || n, client, model, now() - n * interval '5 minutes', now() - n * interval '5 minutes'
		FROM (SELECT * FROM sessions LIMIT 1) one, generate_series(1, 9994) n`)
	// Two weeks of work: what was asked for is of last week, what resembles it most is of this one.
	monday := time.Now().UTC()
	monday = monday.AddDate(0, 0, -(int(monday.Weekday())+6)%7-7)
	for _, table := range []string{"archive_documents SET at = $1 WHERE session_id IN (SELECT id FROM sessions WHERE title LIKE 'Task 4%')", "sessions SET started_at = $1, last_at = $1 WHERE title LIKE 'Task 4%'"} {
		change(t, person, "UPDATE "+table, monday)
	}

	page := person.Get("/sessions?q=" + url.QueryEscape("the session last week that fixed the rounding of refunds")) // one: type
	first := page.Find(`[data-testid="hits"] a.ttl`).First()
	if !strings.HasPrefix(first.Text(), "Task 4") {
		t.Fatalf("first is %q: %s", first.Text(), page.Text("#list"))
	}
	opened := person.Get(first.AttrOr("href", "")) // two: click
	if opened.Status != http.StatusOK || !strings.Contains(opened.Text("main"), "split order once, on the sum") {
		t.Errorf("status %d: %s", opened.Status, opened.Text("main"))
	}
}

// A found session can be continued in a client, from a message, with its messages as JSON.
func TestSessionIsContinuedFromAMessage(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, 100_000), "laptop")
	person.TalkOnce(secret, 100_000, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"One"},
		{"role":"assistant","content":"Two"},{"role":"user","content":"Three"}]}`, "claude-cli/2.0")
	session := person.Newest().ID.String()

	page := person.Get("/sessions/" + session)
	if got := page.Find(`[data-testid="continue"]`).AttrOr("href", ""); got != "/sessions/"+session+"/continue" {
		t.Fatalf("Continue leads to %q", got)
	}
	page = person.Get("/sessions/" + session + "/continue?m=1")
	for _, client := range []string{"claude-code", "codex", "pi", "opencode"} {
		if want := "palimpsest resume " + session + " --in " + client + " --at 1"; page.Text("#resume-"+client) != want {
			t.Errorf("the command is %q, want %q", page.Text("#resume-"+client), want)
		}
	}
	if page.TestID("no-summary") == "" {
		t.Error("a session without compaction has a summary")
	}
	if got, want := page.Find(`[data-testid="messages-json"]`).AttrOr("href", ""), "/api/v1/sessions/"+session+"/export?at=1&format=jsonl"; got != want {
		t.Errorf("the messages are at %q, want %q", got, want)
	}
	if wrong := person.Get("/sessions/" + session + "/continue?m=9"); wrong.Status != http.StatusUnprocessableEntity || !strings.Contains(wrong.Text("main"), "Must be a message from 0 to 2.") {
		t.Errorf("status %d: %s", wrong.Status, wrong.Text("main"))
	}
	if viewer := blind(person).Get("/sessions/" + session + "/continue"); !strings.Contains(viewer.TestID("refused"), "does not let you read") || viewer.Has("#resume-codex") {
		t.Errorf("who may not read it reads %s", viewer.Text("main"))
	}
}
