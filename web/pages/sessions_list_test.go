package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

func TestTabsShowAndCountTheirPartOfTheList(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	ids := keep(t, person,
		kept{title: "plain", ago: 1 * time.Minute}, kept{title: "compressed", ago: 2 * time.Minute}, kept{title: "bridged", ago: 3 * time.Minute},
		kept{title: "loss", ago: 4 * time.Minute, net: -7}, kept{title: "failed", ago: 5 * time.Minute, status: http.StatusTooManyRequests},
		kept{title: "truncated", ago: 6 * time.Minute, compression: "truncated"})
	change(t, person, "UPDATE sessions SET epochs = 2 WHERE id = $1", ids[1])
	change(t, person, `INSERT INTO lane_inserts (workspace_id, lane_id, number, message, chain, module, text, tokens)
		SELECT workspace_id, id, 1, 0, '', 'compaction-bridge', '', 1 FROM lanes WHERE session_id = $1`, ids[2])

	all := person.Get("/sessions")
	if tabs := all.Text(".tabs"); tabs != "Mine Conversations 6Compressed 1Bridged 1Problems 3Single calls 0Starred 0" {
		t.Errorf("the tabs say %q", tabs)
	}
	row := func(page webtest.Page, id uuid.UUID) string {
		return page.Find(`[data-testid="sessions"] a[href="/sessions/` + id.String() + `"]`).Closest("tr").Find(".tag").Text()
	}
	for i, tag := range []string{"", "2 compactions", "bridged", "cost more", "failed requests", "truncated"} {
		if got := row(all, ids[i]); got != tag {
			t.Errorf("session %d is tagged %q, want %q", i, got, tag)
		}
	}
	for show, want := range map[string]string{
		"": "plain, compressed, bridged, loss, failed, truncated", "compressed": "compressed", "bridged": "bridged", "problems": "loss, failed, truncated",
	} {
		page := person.Get("/sessions?show=" + show)
		if got := titles(page); got != want {
			t.Errorf("%q lists %q", show, got)
		}
		current := page.Find(`.tabs a[aria-current="true"]`)
		if current.Length() != 1 || show != "" && !strings.HasPrefix(strings.ToLower(current.Text()), show) {
			t.Errorf("%q: %q is current", show, current.Text())
		}
	}
	// What else is asked for stays, and the counts are those of what is asked for.
	narrowed := person.Get("/sessions?q=o&range=24h&show=problems")
	if tabs := narrowed.Text(".tabs"); tabs != "Mine Conversations 2Compressed 1Bridged 0Problems 1Single calls 0Starred 0" {
		t.Errorf("narrowed, the tabs say %q", tabs)
	}
	if link := narrowed.Find(`.tabs a`).Eq(2).AttrOr("href", ""); link != "/sessions?q=o&range=24h&show=compressed" {
		t.Errorf("a tab leads to %s", link)
	}
	if foot := narrowed.Text(".foot"); !strings.Contains(foot, "Showing 1 of 1 matching sessions") {
		t.Errorf("the foot says %q", foot)
	}
}

func TestSessionsWithARequestInTheLastMinutesAreActive(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	ids := keep(t, person, kept{title: "now", client: "codex", ago: time.Minute}, kept{title: "just now", ago: 2 * time.Minute}, kept{title: "before", ago: 6 * time.Minute})
	for _, address := range []string{"/sessions", "/sessions?client=codex", "/sessions?q=none+such"} { // of the workspace, whatever is asked for
		if said := person.Get(address).TestID("active"); said != "2 active now" {
			t.Errorf("%s says %q", address, said)
		}
	}
	page := person.Get("/sessions")
	for i, id := range ids {
		row := page.Find(`[data-testid="sessions"] a[href="/sessions/` + id.String() + `"]`).Closest("tr")
		if marked := row.Find(`.dot`).Text() == "active"; marked != (i < 2) {
			t.Errorf("session %d is marked as active: %t", i, marked)
		}
	}
	change(t, person, "UPDATE sessions SET last_at = last_at - interval '1 hour' WHERE id IS NOT NULL AND $1::uuid IS NOT NULL", ids[0])
	if page := person.Get("/sessions"); page.Has(`[data-testid="active"], [data-testid="sessions"] .dot`) {
		t.Errorf("hours later it says %q", page.TestID("active"))
	}
}

func TestRangesKeysClientsAndModelsNarrowTheListTogether(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	laptop, _ := newKey(t, person, "laptop")
	runner, _ := newKey(t, person, "runner")
	keep(t, person,
		kept{title: "minutes", key: laptop, client: "codex", model: "gpt-5", ago: 10 * time.Minute},
		kept{title: "hours", key: runner, client: "codex", model: "gpt-5", ago: 5 * time.Hour},
		kept{title: "days", key: laptop, client: "claude-code", model: "claude-sonnet-4-5", ago: 5 * 24 * time.Hour},
		kept{title: "weeks", key: runner, client: "claude-code", model: "gpt-5", ago: 20 * 24 * time.Hour},
		kept{title: "months", key: laptop, client: "codex", model: "gpt-5", ago: 70 * 24 * time.Hour})
	for asked, want := range map[string]string{
		"": "minutes, hours, days, weeks, months", "range=1h": "minutes", "range=24h": "minutes, hours", "range=7d": "minutes, hours, days",
		"range=30d": "minutes, hours, days, weeks", "range=another": "minutes, hours, days, weeks, months",
		"key=" + laptop.String(): "minutes, days, months", "key=" + runner.String() + "&range=24h": "hours",
		"client=codex&key=" + laptop.String(): "minutes, months", "model=gpt-5&range=30d": "minutes, hours, weeks",
		"model=gpt-5&client=claude-code": "weeks",
		// An invalid key opens nothing.
		"key=" + uuid.NewString(): "", "key=nonsense": "", "key=" + uuid.Nil.String(): "minutes, hours, days, weeks, months",
	} {
		if got := titles(person.Get("/sessions?" + asked)); got != want {
			t.Errorf("%s lists %q, want %q", asked, got, want)
		}
	}
	page := person.Get("/sessions?range=30d&client=codex&model=gpt-5&key=" + laptop.String())
	if chips := page.Text(".find .chip"); chips != "client:codex model:gpt-5 key:laptop" {
		t.Errorf("the chips say %q", chips)
	}
	if link := page.Find(".find .chip a").Last().AttrOr("href", ""); link != "/sessions?client=codex&model=gpt-5&range=30d" {
		t.Errorf("taking the key off leads to %s", link)
	}
	if chosen := page.Find("#find-key option[selected]").AttrOr("value", ""); chosen != laptop.String() {
		t.Errorf("the form has the key %s", chosen)
	}
	for name, want := range map[string]string{"client": "codex", "model": "gpt-5", "range": "30d"} {
		if got := page.Find(`.find input[name="`+name+`"]`).AttrOr("value", ""); got != want {
			t.Errorf("the form would lose %s: %q", name, got)
		}
	}
	none := person.Get("/sessions?range=1h&client=claude-code")
	if said := none.TestID("empty"); !strings.Contains(said, "5 sessions, none of them in the last hour with these filters") {
		t.Errorf("without a match the page says %q", said)
	}
	if said := person.Get("/sessions?q=nothing+like+this").TestID("empty"); !strings.Contains(said, "5 sessions, none of them with these filters") {
		t.Errorf("without a match of any time the page says %q", said)
	}
}

// What an address says was deleted is a number or nothing: anybody may have written it.
func TestNoticeOfADeletionHoldsNoWordsOfTheAddress(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	keep(t, person, kept{title: "plain"})
	if page := person.Get("/sessions?deleted=2"); !strings.Contains(page.Text(".callout"), "Deleted 2 sessions.") {
		t.Errorf("the page says %q", page.Text("main"))
	}
	for _, text := range []string{"everything.+Call+us", "-1", "1e3", "99999999999999999999"} {
		if page := person.Get("/sessions?deleted=" + text); page.Status != http.StatusOK || page.Has(".callout") {
			t.Errorf("%s: status %d, %q", text, page.Status, page.Text(".callout"))
		}
	}
}

// A title is hostile: it came from the person or program that sends requests.
func TestTitlesAreWrittenAsTextAndNothingElse(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	const title = `<img src=x onerror=alert(1)>"><script>alert(2)</script>`
	ids := keep(t, person, kept{title: title, client: `"><b id=hostile>`, model: `'><b id=hostile>`})
	for _, path := range []string{"/sessions", "/sessions?q=" + "onerror", "/sessions/delete?id=" + ids[0].String()} {
		page := person.Get(path)
		if page.Has("#hostile") || page.Has(`main img`) || page.Has("main script") || !strings.Contains(page.Text("main"), title) {
			t.Errorf("%s: the title is no text: %q", path, page.Text("main"))
		}
	}
	if tricky := person.Get("/sessions?client=%22%3E%3Cb+id%3Dhostile%3E&q=%22%3E%3Cb+id%3Dhostile%3E"); tricky.Has("#hostile") || tricky.Status != http.StatusOK {
		t.Errorf("status %d: what is asked for is no text", tricky.Status)
	}
}

// S3: nobody sees a session of another workspace, in the list, its counts or its file.
func TestListAndFileHoldTheWorkspacesOwnOnly(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person, other := product.SignUp(t, "northbeam"), product.SignUp(t, "zebra")
	keep(t, person, kept{title: "ours"})
	keep(t, other, kept{title: "theirs"}, kept{title: "theirs too"})
	page := person.Get("/sessions")
	if titles(page) != "ours" || !strings.HasPrefix(page.Text(".tabs"), "Mine Conversations 1Compressed 0") {
		t.Errorf("the list has %q and counts %q", titles(page), page.Text(".tabs"))
	}
	if file := person.Get("/sessions/csv"); strings.Contains(file.HTML, "theirs") || !strings.Contains(file.HTML, "ours") {
		t.Errorf("the file has %q", file.HTML)
	}
}

func TestOnlyWhoMayDeleteIsOfferedTo(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	keep(t, person, kept{title: "plain"})
	const offer = `#chosen [formaction="/sessions/delete"]`
	if page := person.Get("/sessions"); page.Find(offer).Length() != 1 || page.Find(`input[name="id"]`).Length() != 1 {
		t.Errorf("the owner is offered %d things", page.Find(offer).Length())
	}
	for _, role := range []tenants.Role{tenants.Regular, tenants.Viewer} {
		if page := person.Colleague(role).Get("/sessions"); page.Has(offer) {
			t.Errorf("%s is offered to delete", role)
		}
	}
}

// Calls that carry no history are counted apart from conversations, and their row says how
// many they were.
func TestSingleCallsAreListedApart(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	scope := session.Scope{Workspace: person.Workspace.ID, APIKey: uuid.New(), Format: conversation.Anthropic}
	single, lane := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	ask := session.Update{
		Scope: scope, Session: single, Lane: lane, Naming: session.Naming{Source: "lineage"}, Title: "How do I wash a rain jacket?", Client: "anthropic-sdk",
		At: time.Now(), Messages: session.Messages{Position: 1, Head: conversation.Hash{1}},
		Increment: session.Increment{Exchanges: 1, TokensBefore: 100, TokensAfter: 100},
	}
	if err := person.Sessions.Record(t.Context(), person.Workspace.ID, []session.Update{ask, ask, ask}); err != nil {
		t.Fatal(err)
	}
	page := person.Get("/sessions")
	if page.Has(`[data-testid="sessions"]`) || !strings.Contains(page.Find(`[data-testid="single"]`).Text(), "Single calls, 1") {
		t.Errorf("without a conversation the list is %s", page.Find("#list").Text())
	}
	calls := person.Get(page.Find(`[data-testid="single"]`).AttrOr("href", "")).Find(`[data-testid="sessions"] tbody tr`)
	if calls.Length() != 1 || !strings.Contains(calls.Text(), "3 single calls") {
		t.Errorf("the single calls are %q", calls.Text())
	}
	if head := person.Get("/sessions/" + single.String()).Find(".head").Text(); !strings.Contains(head, "3 single calls of the same question") || strings.Contains(head, ", lasted") {
		t.Errorf("its page says %q", head)
	}
}

// The list, its tab, its file and its export hold the sessions that the person has starred, and no
// one else's.
func TestStarredSessionsAreOnesOwnEverywhere(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	ids := keep(t, person, kept{title: "plain"}, kept{title: "starred", ago: time.Minute}, kept{title: "of a colleague", ago: time.Hour})
	colleague := person.Colleague(tenants.Admin)
	person.Post("/sessions/"+ids[1].String()+"/star", "starred", "true")
	colleague.Post("/sessions/"+ids[2].String()+"/star", "starred", "true")
	for who, want := range map[*webtest.Person]int{person: 1, colleague: 2} {
		title := []string{"plain", "starred", "of a colleague"}[want]
		page := who.Get("/sessions?show=starred")
		if titles(page) != title || !strings.HasSuffix(page.Text(".tabs"), "Starred 1") {
			t.Errorf("the list has %q, want %q; its tabs are %q", titles(page), title, page.Text(".tabs"))
		}
		if records := lines(t, who.Get("/sessions/csv?show=starred")); len(records) != 2 || records[1][1] != title {
			t.Errorf("the file has %v, want %q", records, title)
		}
		led := who.Direct("/sessions/export?all=yes&show=starred")
		if place := led.Header.Get("Location"); place != "/api/v1/sessions/export?id="+ids[want].String() {
			t.Errorf("the export of %q leads to %s with %d", title, place, led.Status)
		}
	}
}
