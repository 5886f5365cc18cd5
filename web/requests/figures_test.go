package requests

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
)

// distinct returns an exchange whose figures are all different, n times as large as those of distinct(1).
func distinct(n int) *tenants.Exchange {
	return &tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()),
		Request: tenants.ExchangeRequest{
			Session: uuid.New(), Lane: uuid.New(), Endpoint: "/v1/messages", Model: "m" + strings.Repeat("x", n), Client: "codex", Position: 7 * n,
		},
		Answer: tenants.ExchangeAnswer{Status: 200 + n, Provider: tenants.ProviderAnthropic, Attempts: 1},
		Prompt: tenants.ExchangePrompt{TokensBefore: 8000 * n, TokensAfter: 5000 * n, Window: 20_000},
		Tokens: tenants.ExchangeTokens{Input: 11 * n, CacheRead: 120 * n, CacheWrite: 1300 * n, Output: 140 * n, MissCause: string(cost.TTLExpiry), MissedTokens: 155 * n},
		Cost:   tenants.ExchangeCost{CostMicroUSD: 1_600_000 * int64(n), NetMicroUSD: -70_000 * int64(n), UnreadMicroUSD: 18, RewrittenMicroUSD: 19},
		Times: tenants.ExchangeTimes{
			Overhead: 1500 * time.Microsecond * time.Duration(n), TTFB: 420 * time.Millisecond * time.Duration(n), Duration: 2400 * time.Millisecond * time.Duration(n),
		},
	}
}

func openedOf(exchange *tenants.Exchange) *opened {
	return &opened{row: newRow(exchange, map[uuid.UUID]string{})}
}

// Every figure of the list stands in its own column and in its own unit.
func TestColumnsHoldTheirOwnFigure(t *testing.T) {
	t.Parallel()
	m := newModel(url.Values{}, tenants.Owner, time.UTC, time.Now())
	want := map[string]string{
		"Received": "8.00k", "Sent": "5.00k", "Cached": "120", "Overhead": "1.5 ms", "Upstream": "2.4 s", "Cost": "$1.6000",
	}
	for _, column := range columnsOf() {
		var shown strings.Builder
		if err := column.Cell(m, newRow(distinct(1), m.Names)).Render(t.Context(), &shown); err != nil {
			t.Fatal(err)
		}
		if figure, is := want[column.Label]; is && !strings.Contains(shown.String(), ">"+figure+"<") {
			t.Errorf("%s shows %s, want %s", column.Label, shown.String(), figure)
		}
		delete(want, column.Label)
	}
	for name := range want {
		t.Errorf("no column %s", name)
	}
}

// The sizes of an opened request are those of their names, and shares are of the prompt that was sent.
func TestFactsOfRequestHoldTheirOwnFigure(t *testing.T) {
	t.Parallel()
	o := openedOf(distinct(1))
	want := map[string]string{
		"Received, estimated": "8,000", "Sent, estimated": "5,000", "Limit": "20,000", "Input, uncached": "11",
		"Read from cache": "120", "Written to cache": "1,300", "Output": "140",
	}
	facts := o.tokens()
	for _, fact := range facts {
		if fact.Value != want[fact.Name] {
			t.Errorf("%s: %s, want %s", fact.Name, fact.Value, want[fact.Name])
		}
		if fact.Name == "Limit" && fact.Title != "filled to 25.0%" {
			t.Errorf("the limit is %s", fact.Title)
		}
	}
	if len(facts) != len(want) {
		t.Errorf("%d facts, want %d", len(facts), len(want))
	}
	if got := o.terms(); got != "" {
		t.Errorf("nothing is known of the terms, and %q is shown", got)
	}
	o.Answer.ServiceTier, o.Answer.Region = "priority", "us"
	if got := o.terms(); got != "service tier priority, region us" {
		t.Errorf("terms: %s", got)
	}
	if got := o.missed(); !strings.Contains(got, "cache had expired") || !strings.Contains(got, " 155 tokens") {
		t.Errorf("missed: %s", got)
	}
	if got := o.place(); !strings.Contains(got, "m=6") || !strings.Contains(got, "lane="+o.Request.Lane.String()) {
		t.Errorf("the newest of seven messages is at %s", got)
	}
	if o.Request.Position = 0; strings.Contains(o.place(), "m=") {
		t.Errorf("without a message: %s", o.place())
	}
	o.Times.Overhead = o.Times.Duration + 1
	if o.upstream() != 0 {
		t.Errorf("the provider took %s", o.upstream())
	}
}

// Times are written in the unit that stands behind them, also at the edges between units.
func TestTimesOfRequestHaveTheirUnit(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		420 * time.Microsecond: "0.42 ms", 999 * time.Millisecond: "999 ms", time.Second: "1.0 s", 9_940 * time.Millisecond: "9.9 s", 10 * time.Second: "10 s", 3 * time.Minute: "3 min",
	} {
		if got := seconds(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
	headers := map[string]string{}
	for _, header := range headersOf(distinct(1), &pipeline.Report{}) {
		headers[header.Name] = header.Value
	}
	if headers["X-Palimpsest-Overhead-Ms"] != "1.50" || headers["Server-Timing"] != "palimpsest;dur=1.50, archive;dur=0.00, provider;dur=420.00" {
		t.Errorf("headers %v", headers)
	}
}

// Of two requests side by side, each side has its own figures, and differences are marked.
func TestComparedRequestsHaveTheirOwnFigures(t *testing.T) {
	t.Parallel()
	s := comparison{First: openedOf(distinct(1)), Second: openedOf(distinct(2))}
	want := map[string][2]string{
		"Status": {"201", "202"}, "Model": {"mx", "mxx"}, "Messages": {"7", "14"}, "Received, estimated": {"8,000", "16,000"}, "Sent, estimated": {"5,000", "10,000"},
		"Read from cache": {"120", "240"}, "Written to cache": {"1,300", "2,600"}, "Output": {"140", "280"},
		"Cost": {"$1.60", "$3.20"}, "First byte": {"420 ms", "840 ms"}, "Total time": {"2.4 s", "4.8 s"}, "Limit": {"20,000", "20,000"}, "Client": {"Codex", "Codex"},
	}
	for _, difference := range s.differences() {
		figures, is := want[difference.Name]
		if !is {
			continue
		}
		if got := [2]string{difference.First, difference.Second}; got != figures || difference.Differs != (figures[0] != figures[1]) {
			t.Errorf("%+v, want %s", difference, figures)
		}
		delete(want, difference.Name)
	}
	for name := range want {
		t.Errorf("nothing is said of %s", name)
	}
}

// Each of several filters is taken off alone, and days end with their last moment.
func TestFiltersComeOffOneByOne(t *testing.T) {
	t.Parallel()
	asked := url.Values{"tag": {"a=1", "b=2", "c=3"}, "client": {"codex"}, "model": {"m"}, "status": {"4xx"}, "cursor": {"x"}, "to": {"2026-01-31"}}
	m := newModel(asked, tenants.Owner, time.UTC, time.Now())
	chips := m.chips()
	if len(chips) != 6 {
		t.Fatalf("%d filters", len(chips))
	}
	for _, chip := range chips {
		name, value, _ := strings.Cut(chip.Text, ":")
		path, err := url.Parse(chip.Path)
		if err != nil {
			t.Fatal(err)
		}
		left := path.Query()
		for of, values := range asked {
			for _, other := range values {
				isGone := of == "cursor" || of == name && other == value
				if strings.Contains(" "+strings.Join(left[of], " ")+" ", " "+other+" ") == isGone {
					t.Errorf("without %s: %s", chip.Text, chip.Path)
				}
			}
		}
	}
	if want := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC); !m.Filter.To.Equal(want) {
		t.Errorf("up to %s, want %s", m.Filter.To, want)
	}
}

// A prompt has the projection of its own thread, or else of the thread that it was taken over from: numbers
// begin at one in each thread of a session.
func TestRequestHasTheCompactionOfItsThread(t *testing.T) {
	t.Parallel()
	own, other := uuid.New(), uuid.New()
	all := []cost.Decision{{Lane: other, Number: 1}, {Lane: other, Number: 2}, {Lane: own, Number: 2}, {Lane: own, Number: 3}}
	for number, want := range map[int]uuid.UUID{1: other, 2: own, 3: own, 4: uuid.Nil} {
		found := decisionOf(all, own, number)
		if (found != nil) != (want != uuid.Nil) || found != nil && (found.Lane != want || found.Number != number) {
			t.Errorf("number %d: %+v, want that of %s", number, found, want)
		}
	}
}

// listed are exchanges of one session, of which a page holds as many as are asked for.
type listed struct {
	exchanges

	all []tenants.Exchange
}

type exchanges = tenants.Exchanges

func (l listed) Exchanges(_ context.Context, _ tenants.WorkspaceID, filter tenants.ExchangeFilter) ([]tenants.Exchange, string, error) {
	return l.all[:min(filter.Limit, len(l.all))], "", nil
}

// Wherever a request stands among those of its session, as many others are offered as there is room for.
func TestRequestIsComparedWithOthersOfItsSession(t *testing.T) {
	t.Parallel()
	for _, number := range []int{1, 2, beside, beside + 1, beside + 5} {
		var all []tenants.Exchange
		for range number {
			all = append(all, *distinct(1))
		}
		h := Handler{deps: Deps{Exchanges: listed{all: all}}}
		for _, at := range []int{0, number - 1} {
			rows, err := h.nearby(t.Context(), tenants.Principal{}, &opened{}, &all[at])
			if err != nil || len(rows) != min(number-1, beside) {
				t.Errorf("%d of %d: %d are offered, %v", at, number, len(rows), err)
			}
			for _, row := range rows {
				if row.ID == all[at].ID {
					t.Errorf("%d of %d is offered to compare with itself", at, number)
				}
			}
		}
	}
}

// A status is colored and filtered by its class.
func TestStatusHasItsClass(t *testing.T) {
	t.Parallel()
	for status, want := range map[int][2]string{
		http.StatusOK: {"2xx", "ok"}, http.StatusBadRequest: {"4xx", "warn"}, 399: {"3xx", "ok"}, 499: {"4xx", ""}, http.StatusInternalServerError: {"5xx", "bad"},
	} {
		r := row{Exchange: tenants.Exchange{Answer: tenants.ExchangeAnswer{Status: status}}}
		if got := [2]string{r.statusClass(), statusTag(status)}; got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}
