package pages_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

func TestLossIsShownAsALossWithWhatToDo(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	overviewRecord(t, person, exchange(time.Now(), func(e *tenants.Exchange) {
		e.Cost.NetMicroUSD, e.Cost.UnreadMicroUSD, e.Cost.RewrittenMicroUSD = -420_000, 80_000, 700_000
	}))

	page := person.Get("/overview")
	if page.TestID("net") != "−$0.42" || !page.Has(`[data-testid="net"].down`) || !page.Has(`[data-testid="better"] a[href="/pipeline?module=ipc#field-ipc-targetUtilization"]`) {
		t.Errorf("the page says %q", page.Text("main"))
	}
	if title := page.Text("#card-money h2"); title != "Where the loss of $0.42 comes from" {
		t.Errorf("the sum is called %q", title)
	}
	want := "Input tokens not sent +$0.20 Cached input not read +$0.08 Cache rewritten after compression −$0.70 Summarizer and embedding calls $0.00 Net saved −$0.42"
	if ways := strings.Join(strings.Fields(page.Find(`[data-testid="ways"]`).Text()), " "); strings.ReplaceAll(ways, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("the sum is %q\nwant       %q", ways, want)
	}
	if page.Find(`[data-testid="ways"] rect.f-minium`).AttrOr("width", "") != "100.0%" {
		t.Error("the largest part's bar is not the longest")
	}
}

func TestEachFigureIsComparedWithTheTimeBefore(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	now, before := time.Now().Add(-time.Hour), time.Now().Add(-30*time.Hour)
	for range 10 {
		overviewRecord(t, person,
			exchange(before, func(e *tenants.Exchange) {
				e.Cost.NetMicroUSD, e.Tokens.CacheRead, e.Tokens.Input = 20_000, 2_000, 2_000
			}),
			exchange(before, func(e *tenants.Exchange) {
				e.Cost.NetMicroUSD, e.Prompt.TokensAfter, e.Tokens.CacheRead, e.Tokens.Input = 5_000, 5_000, 2_000, 2_000
			}),
			exchange(now, func(e *tenants.Exchange) { e.Times.Overhead, e.Prompt.Compression = 90*time.Millisecond, "epoch" }),
		)
	}
	ledger := person.Get("/overview?range=24h").TestID("ledger")
	for _, want := range []string{
		"▲up 20% on the day before", "▲up 5.0 pt", "▲up 25.0 pt", "▲up 87 ms at p99", "no earlier figures", "▼down 50%",
	} {
		if !strings.Contains(strings.NewReplacer("▲ up", "▲up", "▼ down", "▼down").Replace(ledger), want) {
			t.Errorf("the ledger lacks %q: %s", want, ledger)
		}
	}
	classes := person.Get("/overview?range=24h").Find(`[data-testid="ledger"] dd.d .up, [data-testid="ledger"] dd.d .down, [data-testid="ledger"] dd.d .flat`)
	var got []string
	for _, node := range classes.Nodes {
		got = append(got, node.Attr[0].Val)
	}
	if want := []string{"up", "up", "up", "down", "flat"}; !slices.Equal(got, want) {
		t.Errorf("the changes are %v, want %v: more overhead is worse, more requests are neither", got, want)
	}
}

func TestComparisonNeedsABasis(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	now, before := time.Now().Add(-time.Hour), time.Now().Add(-30*time.Hour)
	earn := func(at time.Time, count int, net int64) {
		t.Helper()
		batch := make([]tenants.Exchange, count)
		for i := range batch {
			batch[i] = exchange(at, func(e *tenants.Exchange) { e.Cost.NetMicroUSD = net })
		}
		overviewRecord(t, person, batch...)
	}
	expect := func(what string, want bool) {
		t.Helper()
		ledger := person.Get("/overview?range=24h").Find(`[data-testid="ledger"]`)
		if got := ledger.Find("dd.d .up, dd.d .down, dd.d .flat").Length() > 0; got != want {
			t.Errorf("%s: compared %v, want %v: %s", what, got, want, ledger.Text())
		}
		if strings.Contains(ledger.Text(), "×") {
			t.Errorf("%s: growth by a factor is shown: %s", what, ledger.Text())
		}
	}
	earn(before, 19, 100)
	earn(now, 55, 30_000)
	expect("19 requests before", false)
	earn(before, 1, 100)
	expect("20 requests before", true)
	if net := person.Get("/overview?range=24h").Find(`[data-testid="ledger"] .lead`); net.Find(".up, .down").Length() > 0 {
		t.Errorf("net is compared with less than a tenth of itself: %s", net.Text())
	}
	earn(now, 146, 30_000)
	expect("20 requests before, 201 now", false)
}

// Requests that could not have been sent as they came are counted beside the money, on the
// page, in its table and in its downloads, with the definition one click away.
func TestReachStandsBesideTheMoney(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	overviewRecord(t, person,
		exchange(time.Now(), func(e *tenants.Exchange) { e.Cost.NetMicroUSD = 20_000 }),
		exchange(time.Now(), func(e *tenants.Exchange) { e.Cost.NetMicroUSD, e.Prompt.Reach = 0, true }),
		exchange(time.Now(), func(e *tenants.Exchange) { e.Cost.NetMicroUSD, e.Prompt.Reach = 0, true }),
	)
	page := person.Get("/overview")
	if reach := page.TestID("reach"); !strings.Contains(reach, "2 requests") {
		t.Errorf("reach is %q", reach)
	}
	if net := page.TestID("net"); net != "$0.02" {
		t.Errorf("net is %q", net)
	}
	if ledger := page.TestID("ledger"); strings.Contains(ledger, "Tokens saved") || !strings.Contains(page.TestID("not-savings"), "without 2 requests too long to send: 20.0k in, 8.00k sent") {
		t.Errorf("tokens that could not have been sent are called saved: %s", ledger)
	} else if !strings.Contains(ledger, "6.00k 60.0% 10.0k in, 4.00k sent") {
		t.Errorf("the tokens that were not sent are not those of one request: %s", ledger)
	}
	for _, part := range []string{"tokens", "split"} {
		heading, _, _ := strings.Cut(person.Get("/overview/data.csv?part="+part).HTML, "\n")
		if !strings.Contains(heading, ",Not sent,") || strings.Contains(heading, ",Saved,") {
			t.Errorf("the file %s has the columns %s", part, heading)
		}
	}
	if target := page.Find(`[data-testid="claims"]`).AttrOr("popovertarget", ""); !page.Has("#"+target+"[popover]") || !strings.Contains(page.TestID("claims-text"), "No money is claimed") {
		t.Errorf("the definition is not one click away: %q", target)
	}
	if reach := strings.TrimSpace(page.Find("#split tbody tr").First().Find("td").Last().Text()); reach != "2" {
		t.Errorf("the row's reach is %q", reach)
	}
}

func TestARangeOfOnesOwnIsInTheReadersZoneAndInWholeSteps(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	at := time.Date(2026, 3, 1, 20, 10, 0, 0, time.UTC)
	overviewRecord(t, person, exchange(at, same), exchange(at.Add(-time.Hour), same))
	ask := func(from, to, zone string) webtest.Page {
		return person.Get("/overview?table=tokens&from="+url.QueryEscape(from)+"&to="+url.QueryEscape(to), "Cookie", cookies(person)+"; zone="+zone)
	}
	// Berlin is an hour ahead.
	page := ask("2026-03-01T21:05", "2026-03-01T21:20", "Europe/Berlin")
	if page.TestID("requests") != "1" || !strings.Contains(page.TestID("chart-table"), "1 Mar 2026, 21:00") {
		t.Errorf("%s requests: %s", page.TestID("requests"), page.TestID("chart-table"))
	}
	if typed := page.Find(`[data-testid="range"] [name="from"]`).AttrOr("value", ""); typed != "2026-03-01T21:00" {
		t.Errorf("the field says %q", typed)
	}
	if same := ask("2026-03-01T20:00:00Z", "2026-03-01T20:30:00Z", "UTC"); same.TestID("requests") != "1" {
		t.Errorf("the same range with its zone has %s requests", same.TestID("requests"))
	}
	// A day without a time is taken as a whole, in the reader's zone.
	for day, want := range map[string]string{"2026-03-01": "2", "2026-02-28": "0"} {
		if days := ask(day, day, "Europe/Berlin"); days.TestID("requests") != want {
			t.Errorf("%s has %s requests, want %s", day, days.TestID("requests"), want)
		}
	}
	if days := ask("2026-02-28", "2026-03-01", "Europe/Berlin"); days.Find(`[data-testid="range"] [name="to"]`).AttrOr("value", "") != "2026-03-02T00:00" {
		t.Errorf("two days end at %s", days.Find(`[data-testid="range"] [name="to"]`).AttrOr("value", ""))
	}
	if link := page.Find(`#split nav a`).AttrOr("href", ""); !strings.Contains(link, "from=2026-03-01T20%3A00%3A00Z") {
		t.Errorf("the range is lost on the way to %s", link)
	}
}

func TestARangeThatCannotBeShownIsSaidAtItsField(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	overviewRecord(t, person, exchange(time.Now(), same))
	for query, want := range map[string]string{
		"from=moon&to=2026-03-01T00:00":             "From must be a day and a time.",
		"from=2026-03-01T00:00&to=":                 "To must be a day and a time.",
		"from=2026-03-01T00:00&to=2026-02-01T00:00": "To must be after From.",
		"from=1999-03-01T00:00&to=2026-02-01T00:00": "To must be at most five years after From.",
	} {
		page := person.Get("/overview?" + query)
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("range"), want) || !page.Has(`details[open] [aria-invalid="true"]`) {
			t.Errorf("%s: status %d, %s", query, page.Status, page.TestID("range"))
		}
		if typed := page.Find(`[data-testid="range"] [name="from"]`).AttrOr("value", ""); !strings.HasPrefix(query, "from="+typed) {
			t.Errorf("%s: what was typed became %q", query, typed)
		}
		if page.TestID("requests") != "1" {
			t.Errorf("%s: seven days are not shown", query)
		}
	}
}

func TestFiltersNarrowThePageAndComeOffAgain(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	one := exchange(time.Now(), func(e *tenants.Exchange) { e.Request.Client, e.Request.Model = "codex", "gpt-5.5" })
	overviewRecord(t, person, one, exchange(time.Now(), same), exchange(time.Now(), same))

	page := person.Get("/overview?range=24h")
	if choices := page.TestID("narrow"); !strings.Contains(choices, "All clientsClaude CodeCodex") || !strings.Contains(choices, "gpt-5.5") {
		t.Errorf("there is to choose from %q", choices)
	}
	narrow := person.Get("/overview?range=24h&client=codex&model=gpt-5.5&key=" + one.Request.APIKey.String())
	if narrow.TestID("requests") != "1" || narrow.Find(`[data-testid="filters"] li`).Length() != 3 {
		t.Errorf("%s requests with the filters %s", narrow.TestID("requests"), narrow.TestID("filters"))
	}
	off := narrow.Find(`[data-testid="filters"] a`).AttrOr("href", "")
	if !strings.Contains(off, "range=24h") || strings.Contains(off, "client=") || !strings.Contains(off, "model=") {
		t.Errorf("the first filter comes off at %s", off)
	}
	none := person.Get("/overview?range=24h&client=cursor")
	if text := none.TestID("nothing"); !strings.Contains(text, "No request in the last 24 hours") || !strings.Contains(text, "Clear filters") {
		t.Errorf("without a match: %q", text)
	}
	if kept := none.Find(`[data-testid="range"] input[name="client"]`).AttrOr("value", ""); kept != "cursor" {
		t.Errorf("the range's form forgets the client: %q", kept)
	}
}

// Who may read figures only sees them, and no way to where they may not go.
func TestBillingSeesFiguresAndNoWayToWhereItMayNotGo(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	needy(t, person)
	overviewRecord(t, person, exchange(time.Now(), func(e *tenants.Exchange) { e.Cost.NetMicroUSD = -9_000_000 }))
	page := person.Colleague(tenants.Billing).Get("/overview")
	if page.Status != http.StatusOK || !strings.Contains(page.TestID("attention"), "anthropic-prod was rejected 14 times") {
		t.Errorf("status %d: %s", page.Status, page.TestID("attention"))
	}
	for _, link := range []string{"/pipeline", "/providers", "/keys", "/sessions"} {
		if page.Has(`main a[href^="` + link + `"]`) {
			t.Errorf("a link to %s", link)
		}
	}
}

// B9: so do requests whose target is out of reach.
func TestKeysThatClientsHoldAndThatDoNotWorkNeedAttention(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	needy(t, person)
	list := person.Get("/overview").TestID("attention")
	for _, want := range []string{"anthropic-prod was rejected 14 times", "401 from Anthropic", "Replace key", "Key ci-agents expires in 2 days", "14 requests stayed above the target"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q: %s", want, list)
		}
	}
	if strings.Index(list, "rejected") > strings.Index(list, "expires") {
		t.Errorf("what costs comes before what is broken: %s", list)
	}
	owner := person.Database.Owner(t)
	for _, step := range []struct{ change, want string }{
		{"expires_at = now() - interval '10 minutes'", "Key ci-agents has expired"},
		{"expires_at = NULL, revoked_at = now() - interval '2 minutes'", "Key ci-agents was revoked while it was used"},
	} {
		if _, err := owner.Exec(t.Context(), "UPDATE api_keys SET "+step.change); err != nil {
			t.Fatal(err)
		}
		if list := person.Get("/overview").TestID("attention"); !strings.Contains(list, step.want) {
			t.Errorf("after %s the list lacks %q: %s", step.change, step.want, list)
		}
	}
}
