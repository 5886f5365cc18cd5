package pages_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

// exchange returns an exchange at a time.
func exchange(at time.Time, change func(*tenants.Exchange)) tenants.Exchange {
	e := tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), At: at,
		Request: tenants.ExchangeRequest{
			APIKey: uuid.New(), Endpoint: "/v1/messages", Model: "claude-sonnet-4-5", Client: "claude-code",
		},
		Answer: tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: http.StatusOK, Attempts: 1},
		Prompt: tenants.ExchangePrompt{Compression: "none", TokensBefore: 10_000, TokensAfter: 4_000, Window: 200_000},
		Tokens: tenants.ExchangeTokens{Input: 1_000, CacheRead: 3_000, CacheWrite: 0, Output: 50},
		Cost:   tenants.ExchangeCost{CostMicroUSD: 20_000, NetMicroUSD: 30_000},
		Times:  tenants.ExchangeTimes{Overhead: 2 * time.Millisecond, Duration: 212 * time.Millisecond},
	}
	change(&e)
	return e
}

func overviewRecord(t *testing.T, person *webtest.Person, exchanges ...tenants.Exchange) {
	t.Helper()
	if err := person.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, exchanges); err != nil {
		t.Fatal(err)
	}
}

func same(*tenants.Exchange) {}

func TestNewWorkspaceSeesThreeStepsAndNoZeros(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	page := person.Get("/overview")
	if page.Find(`[data-testid="steps"] > li`).Length() != 3 || page.Has(`[data-testid="ledger"]`) {
		t.Errorf("the page says %q", page.Text("main"))
	}
	if trigger := page.Find(`[data-testid="steps"]`).AttrOr("hx-trigger", ""); trigger != "live, every 15s" {
		t.Errorf("the steps look again at %q", trigger)
	}
}

func TestStepsTurnGreenAsTheyAreDone(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	done := func() string {
		return person.Get("/overview/first-request").Find(`[data-testid="steps"]`).AttrOr("data-done", "")
	}

	person.Post("/providers", "provider", "anthropic", "name", "prod", "key", "sk-ant-12345678", "base_url", "")
	if done() != "1" {
		t.Errorf("with a provider key %s steps are done", done())
	}
	person.Post("/keys", "name", "laptop", "expiry", "")
	if done() != "2" {
		t.Errorf("with an API key %s steps are done", done())
	}
	overviewRecord(t, person, exchange(time.Now(), same))
	arrived := person.Get("/overview/first-request")
	if text := arrived.TestID("steps"); !strings.Contains(text, "First request received") || !strings.Contains(text, "Claude Code") || !strings.Contains(text, "212 ms") {
		t.Errorf("after the first request: %q", text)
	}
	if link := arrived.Find(`[data-testid="steps"] a[href^="/requests/"]`).AttrOr("href", ""); person.Get(link).Status != http.StatusOK || link == "" {
		t.Errorf("the first request is not linked: %q", link)
	}
	if done() != "3" {
		t.Errorf("at the end %s steps are done", done())
	}
	if arrived.Has("[hx-trigger]") {
		t.Error("it goes on looking")
	}
}

func TestNumbersAreThoseOfTheExchanges(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	now := time.Now()
	overviewRecord(t, person,
		exchange(now.Add(-time.Minute), same),
		exchange(now.Add(-2*time.Minute), func(e *tenants.Exchange) { e.Prompt.Compression, e.Cost.NetMicroUSD = "epoch", -45_000 }),
		exchange(now.Add(-3*time.Minute), func(e *tenants.Exchange) { e.Answer.Status, e.Request.Client = http.StatusTooManyRequests, "codex" }),
		exchange(now.Add(-10*24*time.Hour), func(e *tenants.Exchange) { e.Prompt.TokensBefore = 5_000_000 }),
	)

	page := person.Get("/overview?range=24h")
	ledger := page.TestID("ledger")
	for _, want := range []string{"$0.01", "18.0k 60.0%", "30.0k in, 12.0k sent", "75.0%", "9.00k of 12.0k input", "2.0 ms / 2.0 ms", "33.3% failed · 1", "none by clients themselves"} {
		if !strings.Contains(ledger, want) {
			t.Errorf("the ledger lacks %q: %s", want, ledger)
		}
	}
	if page.TestID("requests") != "3" || page.TestID("epochs") != "1" {
		t.Errorf("%s requests, %s epochs in a day", page.TestID("requests"), page.TestID("epochs"))
	}
	if month := person.Get("/overview?range=30d"); month.TestID("requests") != "4" {
		t.Errorf("%s requests in a month", month.TestID("requests"))
	}
	if split := page.TestID("split"); !strings.Contains(split, "Claude Code 2") || !strings.Contains(split, "Codex 1") {
		t.Errorf("by client: %s", split)
	}
	if byModel := person.Get("/overview?range=24h&by=model").TestID("split"); !strings.Contains(byModel, "claude-sonnet-4-5 3") {
		t.Errorf("by model: %s", byModel)
	}
}

// brokenUsage cannot add up.
type brokenUsage struct{ tenants.UsageReader }

var errBrokenUsage = errors.New("relation rollups does not exist")

func (brokenUsage) Totals(context.Context, tenants.WorkspaceID, tenants.UsageFilter) (tenants.Totals, error) {
	return tenants.Totals{}, errBrokenUsage
}

func (brokenUsage) Balance(context.Context, tenants.WorkspaceID, tenants.UsageFilter) (tenants.Balance, error) {
	return tenants.Balance{}, errBrokenUsage
}

func TestFailedCardSaysSoAndLeavesTheOthers(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t, func(_ *webtest.Product, deps *web.Deps) { deps.Traffic.Usage = brokenUsage{deps.Traffic.Usage} })
	person := product.SignUp(t, "northbeam")
	overviewRecord(t, person, exchange(time.Now(), same))

	page := person.Get("/overview")
	if page.Find(`[data-testid="failed"]`).Length() != 4 {
		t.Errorf("%d cards failed, want the totals, what they are made of, the misses and what needs attention", page.Find(`[data-testid="failed"]`).Length())
	}
	if failed := page.TestID("failed"); page.Status != http.StatusOK || !strings.Contains(failed, "Reference") || strings.Contains(page.HTML, "relation") {
		t.Errorf("status %d, %q", page.Status, failed)
	}
	page.Find(`[data-testid="failed"] a`).Each(func(_ int, retry *goquery.Selection) {
		if path := retry.AttrOr("href", ""); !strings.HasPrefix(path, "/overview") {
			t.Errorf("a retry leads to %q", path)
		}
	})
	if page.Find("[data-chart]").Length() != 4 || !page.Has(`[data-testid="split"]`) {
		t.Error("the other cards are gone")
	}
}
