package pages_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// C11: a workspace that would be cheaper without compression is told so, with the
// number, whatever range the page shows.
func TestWorkspaceThatWouldBeCheaperWithoutIsToldSo(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	spend := func(count int, net int64) {
		for range count {
			overviewRecord(t, person, exchange(time.Now().Add(-50*time.Hour), func(e *tenants.Exchange) {
				e.Prompt.Projection, e.Cost.NetMicroUSD, e.Cost.CostMicroUSD = 1, net, 100_000
			}))
		}
	}
	spend(19, -21_000)
	if page := person.Get("/overview?range=24h"); page.Has(`[data-testid="advice"]`) {
		t.Errorf("advice after 19 requests: %s", page.TestID("advice"))
	}
	spend(1, -21_000)
	advice := person.Get("/overview?range=24h").TestID("advice")
	for _, want := range []string{"$0.42 more than it saved", "20 compressed requests", "would have paid $1.58"} {
		if !strings.Contains(advice, want) {
			t.Errorf("the advice lacks %q: %s", want, advice)
		}
	}
	const target = "/pipeline?module=ipc#field-ipc-targetUtilization"
	if link := person.Get("/overview").Find(`[data-testid="advice"] a`).AttrOr("href", ""); link != target {
		t.Errorf("the advice leads to %q", link)
	}
	spend(1, 500_000)
	if page := person.Get("/overview"); page.Has(`[data-testid="advice"]`) {
		t.Errorf("advice although it paid: %s", page.TestID("advice"))
	}
}

// What compression lost stands in Needs attention from twenty compressed requests of the
// last seven days on, as long as they lost, and leads to the target with its preview.
// Who may not see the pipeline gets the row without a link.
func TestNetLossNeedsAttentionWhileThereIsOne(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	const row = "more than it saved"
	spend := func(count int, ago time.Duration, net int64) {
		for range count {
			overviewRecord(t, person, exchange(time.Now().Add(-ago), func(e *tenants.Exchange) {
				e.Prompt.Projection, e.Cost.NetMicroUSD, e.Cost.CostMicroUSD = 1, net, 100_000
			}))
		}
	}
	spend(20, 8*24*time.Hour, -21_000)
	spend(19, 50*time.Hour, -21_000)
	if list := person.Get("/overview").TestID("attention"); strings.Contains(list, row) {
		t.Errorf("after 19 requests of the last week: %s", list)
	}
	spend(1, 50*time.Hour, -21_000)
	loss := person.Get("/overview?range=24h").Find(`[data-testid="attention"] li`)
	if text := strings.Join(strings.Fields(loss.Text()), " "); loss.Length() != 1 || !strings.Contains(text, "Compression cost $0.42 "+row) || !strings.Contains(text, "Over 20 compressed requests") {
		t.Errorf("%d rows: %s", loss.Length(), text)
	}
	link := loss.Find("a").AttrOr("href", "")
	path, anchor, _ := strings.Cut(link, "#")
	if page := person.Get(path); link != "/pipeline?module=ipc#field-ipc-targetUtilization" || !page.Has("#"+anchor) || !page.Has(`[data-testid="preview"]`) {
		t.Errorf("it leads to %q", link)
	}
	if list := person.Colleague(tenants.Billing).Get("/overview").Find(`[data-testid="attention"] li`); list.Length() != 1 || list.Find("a").Length() != 0 {
		t.Errorf("for who may not see the pipeline: %s", list.Text())
	}
	spend(1, time.Hour, 420_000)
	if list := person.Get("/overview").TestID("attention"); strings.Contains(list, row) {
		t.Errorf("although it lost nothing: %s", list)
	}
}

func TestMissesAreShownByCause(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	missed := func(cause string, tokens int) tenants.Exchange {
		return exchange(time.Now(), func(e *tenants.Exchange) { e.Tokens.MissCause, e.Tokens.MissedTokens = cause, tokens })
	}
	overviewRecord(t, person, missed("ttl_expiry", 4000), missed("ttl_expiry", 6000), missed("prefix_change_ours", 2000), missed("", 0))

	rows := person.Get("/overview").Text(`[data-testid="misses"] tbody`)
	if want := "Cache expired 2 10.0k Compaction rewrote the prompt 1 2.00k"; rows != want {
		t.Errorf("the misses are %q, want %q", rows, want)
	}
}

func TestSessionsThatNeedAttentionAreListed(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if person.Get("/overview").Has(`[data-testid="attention"]`) {
		t.Error("a new workspace needs attention")
	}
	seen := session.Update{
		Scope: session.Scope{Workspace: person.Workspace.ID, APIKey: uuid.New(), Format: conversation.Anthropic}, Session: uuid.New(), Lane: uuid.New(),
		Naming: session.Naming{Source: "header"}, Title: "Port the <importer>", At: time.Now(),
		Increment: session.Increment{Exchanges: 1, NetMicroUSD: -250_000},
	}
	for number := range 3 {
		if err := person.Sessions.Commit(t.Context(), seen, session.Projection{Number: number + 1, Reason: "target", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := person.Sessions.Record(t.Context(), person.Workspace.ID, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	overviewRecord(t, person, exchange(time.Now(), func(e *tenants.Exchange) {
		e.Request.Session, e.Request.Lane, e.Prompt.Compression = seen.Session, seen.Lane, "truncated"
	}))

	page := person.Get("/overview")
	list := page.TestID("attention")
	for _, want := range []string{"1 session cost $", "1 session had turns cut off", "1 session compressed many times", "“Port the <importer>”, 3 compactions"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q: %s", want, list)
		}
	}
	if link := page.Find(`[data-testid="attention"] a`).AttrOr("href", ""); link != "/sessions/"+seen.Session.String() {
		t.Errorf("it leads to %q", link)
	}
}
