package pages_test

import (
	"fmt"
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

// sessionsRecord keeps a session with so many exchanges, begun at a time.
func sessionsRecord(t *testing.T, person *webtest.Person, title, client string, at time.Time, exchanges int) uuid.UUID {
	t.Helper()
	id, lane := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	scope := session.Scope{Workspace: person.Workspace.ID, APIKey: uuid.New(), Format: conversation.Anthropic}
	var seen []session.Update
	var kept []tenants.Exchange
	for i := range exchanges {
		moment := at.Add(time.Duration(i) * time.Second)
		seen = append(seen, session.Update{
			Scope: scope, Session: id, Lane: lane, Naming: session.Naming{Source: "header"},
			Increment: session.Increment{
				Continued: true, Exchanges: 1, TokensBefore: 1000 * (i + 1), TokensAfter: 600 * (i + 1), NetMicroUSD: -140_000,
			},
			Title: title, Client: client, Model: "claude-sonnet-4-5",
			At: moment, Messages: session.Messages{Position: i + 1, Head: conversation.Hash{byte(i)}},
		})
		kept = append(kept, tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), At: moment,
			Request: tenants.ExchangeRequest{
				Session: id, Lane: lane, APIKey: scope.APIKey, Endpoint: "/v1/messages", Model: "claude-sonnet-4-5",
				Client: client,
			},
			Answer: tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: http.StatusOK},
			Prompt: tenants.ExchangePrompt{
				Compression: "frozen", TokensBefore: 1000 * (i + 1), TokensAfter: 600 * (i + 1), Window: 10_000,
				Levels: [4]int{1, 2, 0, 1},
			},
		})
	}
	if err := person.Sessions.Record(t.Context(), person.Workspace.ID, seen); err != nil {
		t.Fatal(err)
	}
	if err := person.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, kept); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestNewWorkspaceIsLedToItsFirstSession(t *testing.T) {
	t.Parallel()
	page := webtest.Start(t).SignUp(t, "northbeam").Get("/sessions")

	if !strings.Contains(page.TestID("empty"), "No sessions yet") || page.Has("main table") {
		t.Errorf("the page says %q", page.Text("main"))
	}
}

func TestListShowsWhatEachSessionDid(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	id := sessionsRecord(t, person, "Refactor webhooks", "claude-code", time.Now().Add(-time.Minute), 3)

	page := person.Get("/sessions")
	row := page.Text(`[data-testid="sessions"] tbody tr`)
	for _, want := range []string{"Refactor webhooks", "Claude Code", "claude-sonnet-4-5", "6.00k", "3.60k", "40.0%", "−$0.42"} {
		if !strings.Contains(row, want) {
			t.Errorf("the row lacks %q: %s", want, row)
		}
	}
	if !page.Has(`[data-testid="sessions"] svg.spark`) || !page.Has(`[data-testid="sessions"] svg.lvbar`) {
		t.Error("the row has no picture of its requests")
	}
	if link := page.Find(`[data-testid="sessions"] a.ttl`).AttrOr("href", ""); link != "/sessions/"+id.String() {
		t.Errorf("it leads to %s", link)
	}
	if !page.Has(`[data-testid="sessions"] td .down`) {
		t.Error("a loss is not marked")
	}
}

func TestSearchFindsAndSaysWhenNothingMatches(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	sessionsRecord(t, person, "Refactor webhooks", "claude-code", time.Now(), 1)
	sessionsRecord(t, person, "Port the importer", "codex", time.Now(), 1)

	found := person.Get("/sessions?q=importer")
	if row := found.Text(`[data-testid="sessions"] tbody`); !strings.Contains(row, "importer") || strings.Contains(row, "webhooks") {
		t.Errorf("found %q", row)
	}
	if typed := found.Find("#find").AttrOr("value", ""); typed != "importer" {
		t.Errorf("the search holds %q", typed)
	}
	narrowed := person.Get("/sessions?client=codex")
	if !strings.Contains(narrowed.Text(".chip"), "client:codex") || narrowed.Find(`[data-testid="sessions"] tbody tr`).Length() != 1 {
		t.Errorf("narrowed to %q", narrowed.Text("main"))
	}
	none := person.Get("/sessions?q=nothing+is+called+this")
	if !strings.Contains(none.TestID("empty"), "2 sessions, none of them") || !none.Has(`a[href="/sessions"]`) {
		t.Errorf("without a match the page says %q", none.Text("main"))
	}
}

func TestPagesGoOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for i := range 30 {
		sessionsRecord(t, person, fmt.Sprintf("session %02d", i), "curl", time.Now().Add(-time.Duration(i)*time.Hour), 1)
	}

	first := person.Get("/sessions")
	older := first.Find(`[data-testid="older"]`).AttrOr("href", "")
	second := person.Get(older)
	if n, m := first.Find("main tbody tr").Length(), second.Find("main tbody tr").Length(); n != 25 || m != 5 {
		t.Errorf("%d and %d sessions", n, m)
	}
	if !strings.Contains(first.Text("tbody"), "session 00") || !strings.Contains(second.Text("tbody"), "session 29") {
		t.Error("the newest are not first")
	}
	if second.Has(`[data-testid="older"]`) || !strings.Contains(second.Text(".foot"), "Newest") {
		t.Errorf("the last page says %q", second.Text(".foot"))
	}
	if bad := person.Get("/sessions?cursor=nonsense"); bad.Status != http.StatusBadRequest || bad.TestID("problem") == "" {
		t.Errorf("a made-up cursor: %d", bad.Status)
	}
}

// Titles are what was said: who may not read a session sees its figures, and does not
// find it by its words.
func TestTitlesAreHeldBackFromWhoMayNotRead(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	sessionsRecord(t, person, "Port the importer", "claude-code", time.Now(), 2)
	if page := person.Get("/sessions?q=importer"); !strings.Contains(page.TestID("sessions"), "Port the importer") {
		t.Fatalf("the owner sees %q", page.Text("main"))
	}
	colleague := blind(person)
	page := colleague.Get("/sessions?show=conversations")
	if strings.Contains(page.HTML, "importer") || !strings.Contains(page.Text("main"), "titles of sessions that you may not read are not shown") ||
		!strings.Contains(page.TestID("sessions"), "Untitled session") {
		t.Errorf("an admin who may not read it sees %q", page.Text("main"))
	}
	if page := colleague.Get("/sessions?q=importer"); !strings.Contains(page.TestID("empty"), "No matches") {
		t.Errorf("an admin who may not read it finds %q", page.Text("main"))
	}
}
