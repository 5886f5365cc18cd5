package pages_test

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/components"
	"palimpsest/web/webtest"
)

// busy records what a team sends in so many days: less at night and on weekends, with
// epochs at each level, a few failures and calls of the product's own.
func busy(t *testing.T, person *webtest.Person, days int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	clients := []string{"claude-code", "claude-code", "claude-code", "codex", "codex", "cursor", "pi", "openai-sdk"}
	keys := []uuid.UUID{uuid.New(), uuid.New()}
	var all []tenants.Exchange
	for at := time.Now().Add(-time.Duration(days) * 24 * time.Hour); at.Before(time.Now()); at = at.Add(time.Duration(5+random.IntN(20)) * time.Minute) {
		hour := at.UTC().Hour()
		if (hour < 7 || hour > 19 || at.Weekday() == time.Sunday) && random.IntN(6) > 0 {
			continue
		}
		all = append(all, exchange(at, func(e *tenants.Exchange) { vary(e, random, clients, keys) }))
	}
	for len(all) > 0 {
		batch := all[:min(500, len(all))]
		overviewRecord(t, person, batch...)
		all = all[len(batch):]
	}
}

// needy gives the workspace something to look at: a refused provider key and an API
// key that ends.
func needy(t *testing.T, person *webtest.Person) {
	t.Helper()
	provider := tenants.ProviderKey{
		ID: uuid.Must(uuid.NewV7()), Workspace: person.Workspace.ID, Provider: tenants.ProviderAnthropic, Name: "anthropic-prod",
		ProviderKeySecret: tenants.ProviderKeySecret{Last4: "wxyz", Sealed: []byte{1}}, CreatedBy: person.User.ID,
		CreatedAt: time.Now().Add(-time.Hour),
	}
	if err := person.DB.ProviderKeys.AddProviderKey(t.Context(), person.Workspace.ID, provider); err != nil {
		t.Fatal(err)
	}
	owner := person.Database.Owner(t)
	if _, err := owner.Exec(t.Context(), "UPDATE provider_keys SET sealed_at = now() - interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	for minute := range 14 {
		overviewRecord(t, person, exchange(time.Now().Add(-time.Duration(minute+1)*time.Minute), func(e *tenants.Exchange) {
			e.Answer.ProviderKey, e.Answer.Status, e.Answer.ErrorFrom, e.Prompt.Compression = provider.ID, http.StatusUnauthorized, "provider", "unreachable"
		}))
	}
	ends, recently := time.Now().Add(50*time.Hour), time.Now().Add(-time.Hour)
	key, _, hash := person.Keys.Create(person.Workspace.ID, "ci-agents", []tenants.Scope{tenants.ScopeProxy}, person.User.ID, nil)
	key.ExpiresAt = &ends
	if err := person.DB.APIKeys.CreateAPIKey(t.Context(), person.Workspace.ID, key, hash); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(t.Context(), "UPDATE api_keys SET last_used_at = $1", recently); err != nil {
		t.Fatal(err)
	}
}

func vary(e *tenants.Exchange, random *rand.Rand, clients []string, keys []uuid.UUID) {
	e.Request.Client, e.Request.Model, e.Request.APIKey = clients[random.IntN(len(clients))], []string{"claude-sonnet-4-5", "gpt-5.5"}[random.IntN(2)], keys[random.IntN(2)]
	e.Prompt.TokensBefore = 40_000 + random.IntN(140_000)
	e.Prompt.TokensAfter = e.Prompt.TokensBefore * (55 + random.IntN(20)) / 100
	e.Prompt.Levels = [4]int{20, 30 + random.IntN(20), 20, 10 + random.IntN(5)}
	e.Tokens.CacheRead = e.Prompt.TokensAfter * (75 + random.IntN(15)) / 100
	e.Tokens.Input = e.Prompt.TokensAfter - e.Tokens.CacheRead
	e.Cost.UnreadMicroUSD, e.Prompt.Projection = int64(random.IntN(8_000)), 1
	e.Cost.NetMicroUSD = e.Cost.UnreadMicroUSD + int64(random.IntN(16_000))
	e.Times.Overhead = time.Duration(4000+random.IntN(3000)+random.IntN(20)/19*40_000) * time.Microsecond
	switch n := random.IntN(40); {
	case n < 3:
		e.Prompt.Compression, e.Prompt.Levels[3], e.Prompt.Levels[2] = "epoch", n/2*e.Prompt.Levels[3], min(1, n)*e.Prompt.Levels[2]
		e.Cost.RewrittenMicroUSD = int64(60_000 + random.IntN(90_000))
		e.Cost.NetMicroUSD -= e.Cost.RewrittenMicroUSD
		e.Tokens.MissCause, e.Tokens.MissedTokens = "prefix_change_ours", 42_000
	case n == 3:
		e.Prompt.Bridged, e.Request.Class = true, "compaction"
	case n == 4:
		e.Request.Class, e.Request.Client, e.Prompt.TokensBefore, e.Prompt.TokensAfter, e.Cost.NetMicroUSD, e.Cost.UnreadMicroUSD, e.Cost.CostMicroUSD = "summary", "palimpsest", 0, 0, -9_000, 0, 9_000
	case n == 5 && random.IntN(3) == 0:
		e.Prompt.Compression = "emergency"
	case n == 6 && random.IntN(4) == 0:
		e.Answer.Status, e.Answer.ErrorFrom = http.StatusServiceUnavailable, "provider"
	case n == 7:
		e.Tokens.MissCause, e.Tokens.MissedTokens = "ttl_expiry", 30_000+random.IntN(30_000)
	}
}

// chart returns a chart of a page.
func chart(t *testing.T, page webtest.Page, name string) components.Chart {
	t.Helper()
	var c components.Chart
	if err := json.Unmarshal([]byte(page.Find("#card-"+name+" [data-chart]").AttrOr("data-chart", "")), &c); err != nil {
		t.Fatalf("chart %s: %v", name, err)
	}
	return c
}

func sum(values []*int64) (total int64) {
	for _, value := range values {
		if value != nil {
			total += *value
		}
	}
	return total
}

// One definition, one range: the ledger, the charts, the tables, CSV and the split say
// the same.
func TestEveryNumberOfAPageIsTheSameWhereverItStands(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	busy(t, person, 15)
	for _, address := range []string{"range=24h", "range=7d", "range=30d&client=codex", "range=90d", "range=7d&by=key&model=gpt-5.5"} {
		page, tables := together(t, person, "/overview?"+address+"&table=tokens")
		tokens, events := chart(t, page, "tokens"), chart(t, page, "events")
		values := func(card, column string) (total float64) {
			table := tables[card]
			for i, title := range table[0] {
				for _, row := range table[1:] {
					if title == column {
						total += number(t, row[i])
					}
				}
			}
			return total
		}
		received, sent := sum(tokens.Series[0].Values), sum(tokens.Series[1].Values)
		if inTable := values("#card-tokens", "Received"); received == 0 || int64(inTable) != received || int64(values("#split", "Received")) != received {
			t.Errorf("%s: received %d in the chart, %.0f in its CSV, %.0f in the split", address, received, inTable, values("#split", "Received"))
		}
		if ledger := page.TestID("ledger"); !strings.Contains(ledger, components.Short(received)+" in, "+components.Short(sent)+" sent") {
			t.Errorf("%s: the ledger says %s, the chart %d and %d", address, ledger, received, sent)
		}
		if requests := int64(values("#card-tokens", "Requests")); components.Count(requests) != page.TestID("requests") || int64(values("#split", "Requests")) != requests {
			t.Errorf("%s: %d requests in the chart, %s in the ledger", address, requests, page.TestID("requests"))
		}
		epochs := int64(0)
		for _, line := range events.Series {
			if line.Label != "Bridged" {
				epochs += sum(line.Values)
			}
		}
		if components.Count(epochs) != page.TestID("epochs") {
			t.Errorf("%s: %d epochs in the chart, %s in the ledger", address, epochs, page.TestID("epochs"))
		}
		// The parts of the net make up the net.
		money := tables["#card-money"]
		parts := 0.0
		for _, row := range money[1 : len(money)-1] {
			parts += number(t, row[1])
		}
		net := number(t, money[len(money)-1][1])
		if diff := parts - net; diff > 1e-6 || diff < -1e-6 || components.Money(int64(math.Round(net*1e6))) != page.TestID("net") || net == 0 {
			t.Errorf("%s: the parts make %f, net is %f, the ledger says %s", address, parts, net, page.TestID("net"))
		}
		if rows := page.Find(`[data-testid="chart-table"] tbody tr`).Length(); rows == 0 || rows > len(tokens.X) {
			t.Errorf("%s: %d rows in the table of %d steps", address, rows, len(tokens.X))
		}
	}
}

// together returns a page and the tables of its cards, of one range: where a step of the
// charts ends in between, both are asked for again.
func together(t *testing.T, person *webtest.Person, path string) (webtest.Page, map[string][][]string) {
	t.Helper()
	const shortest = 30 * time.Minute
	for {
		began, page, tables := time.Now(), person.Get(path), map[string][][]string{}
		for _, card := range []string{"#card-tokens", "#split", "#card-money"} {
			tables[card] = readCSV(t, person, page.Find(card+` a[href*="data.csv"]`).AttrOr("href", ""))
		}
		if time.Now().Truncate(shortest).Equal(began.Truncate(shortest)) {
			return page, tables
		}
	}
}

func readCSV(t *testing.T, person *webtest.Person, path string) [][]string {
	t.Helper()
	page := person.Get(path)
	if page.Status != http.StatusOK || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/csv") || !strings.Contains(page.Header.Get("Content-Disposition"), "attachment") {
		t.Fatalf("%s: status %d, %v", path, page.Status, page.Header)
	}
	rows, err := csv.NewReader(strings.NewReader(page.HTML)).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%s: %d rows, %v", path, len(rows), err)
	}
	return rows
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCSVOfWhatIsNoTableIsRefused(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for _, query := range []string{"", "part=none", "part=tokens&from=x&to=y"} {
		if page := person.Get("/overview/data.csv?" + query); page.Status != http.StatusBadRequest {
			t.Errorf("%q: status %d", query, page.Status)
		}
	}
}

// A model is called what its client calls it: no spreadsheet computes that.
func TestCSVHoldsNoFormula(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	overviewRecord(t, person, exchange(time.Now(), func(e *tenants.Exchange) { e.Request.Model = "=HYPERLINK(1)" }))
	if rows := readCSV(t, person, "/overview/data.csv?part=split&by=model"); rows[1][0] != "'=HYPERLINK(1)" {
		t.Errorf("the cell is %q", rows[1][0])
	}
}

func TestChartsAreInTheReadersTimeZoneAndSaySo(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	overviewRecord(t, person, exchange(time.Now(), same))
	if sub := person.Get("/overview").Text("#card-tokens .sub"); sub != "per hour, UTC" {
		t.Errorf("without a zone: %q", sub)
	}
	page := person.Get("/overview?table=tokens", "Cookie", cookies(person)+"; zone=Asia%2FKolkata")
	if sub := page.Text("#card-tokens .sub"); sub != "per hour, Asia/Kolkata" || chart(t, page, "tokens").Zone != "Asia/Kolkata" {
		t.Errorf("with a zone: %q", sub)
	}
	if first := page.Text(`[data-testid="chart-table"] tbody td.nowrap`); !strings.HasSuffix(first, ":30") {
		t.Errorf("whole hours of UTC begin at %q there", first)
	}
}

// cookies returns what the person's browser sends.
func cookies(person *webtest.Person) string {
	pairs := make([]string, 0, 2)
	for _, cookie := range person.Cookies() {
		pairs = append(pairs, cookie.Name+"="+cookie.Value)
	}
	return strings.Join(pairs, "; ")
}

func TestDraggingZoomsAndPutsTheRangeIntoTheAddress(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	busy(t, person, 15)
	needy(t, person)
	browser := browsertest.Start(t)
	tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: browsertest.Desktop, Cookies: person.Cookies()})
	tab.Go("/overview?range=7d&client=codex")
	tab.Until(`document.querySelectorAll('[data-chart] canvas').length === 4`)
	if zone := browsertest.Evaluate[string](tab, `document.cookie`); !strings.Contains(zone, "zone=") {
		t.Errorf("the cookies are %q", zone)
	}

	// All charts show what is below the cursor of one.
	box := browsertest.Evaluate[[]float64](tab, `(r => [r.left, r.top, r.width])(document.querySelector('#card-tokens .u-over').getBoundingClientRect())`)
	tab.Do(chromedp.MouseEvent(chromedp.MouseMoved, box[0]+box[2]/2, box[1]+60))
	tab.Until(`document.querySelectorAll('.tip.on').length === 4`)
	if tip := tab.Text("#card-tokens .tip"); !strings.Contains(tip, "Received") || !strings.Contains(tip, "Not sent") {
		t.Errorf("the box says %q", tip)
	}

	tab.Do(
		chromedp.MouseEvent(chromedp.MouseMoved, box[0]+box[2]*0.25, box[1]+60),
		chromedp.MouseEvent(chromedp.MousePressed, box[0]+box[2]*0.25, box[1]+60, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, box[0]+box[2]*0.5, box[1]+60, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseReleased, box[0]+box[2]*0.5, box[1]+60, chromedp.ButtonLeft),
	)
	tab.Until(`location.search.includes('from=') && document.querySelectorAll('[data-chart] canvas').length === 4`)
	query, err := url.ParseQuery(strings.TrimPrefix(browsertest.Evaluate[string](tab, `location.search`), "?"))
	if err != nil {
		t.Fatal(err)
	}
	from, fromErr := time.Parse(time.RFC3339, query.Get("from"))
	to, toErr := time.Parse(time.RFC3339, query.Get("to"))
	if length := to.Sub(from); fromErr != nil || toErr != nil || length < 38*time.Hour || length > 48*time.Hour || query.Get("client") != "codex" || query.Get("range") != "" {
		t.Errorf("a quarter of a week of codex became %v", query)
	}

	// A click on a step leads to its requests, with the time as a filter that can be taken off.
	tab.Go("/overview?range=7d&client=codex")
	tab.Until(`document.querySelectorAll('[data-chart] canvas').length === 4`)
	// All at once: a refresh of the page in between would take the pressed chart away.
	browsertest.Evaluate[bool](tab, `(over => {
		const box = over.getBoundingClientRect();
		const at = { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + 60 };
		return ['mousemove', 'mousedown', 'mouseup', 'click'].every(kind => over.dispatchEvent(new MouseEvent(kind, at)));
	})(document.querySelector('#card-tokens .u-over'))`)
	tab.Until(`location.pathname === '/requests' && document.querySelector('.chip a[aria-label="Remove the filter time"]') !== null`)
	query, err = url.ParseQuery(strings.TrimPrefix(browsertest.Evaluate[string](tab, `location.search`), "?"))
	if err != nil {
		t.Fatal(err)
	}
	since, sinceErr := time.Parse(time.RFC3339, query.Get("since"))
	until, untilErr := time.Parse(time.RFC3339, query.Get("until"))
	if sinceErr != nil || untilErr != nil || until.Sub(since) != time.Hour || query.Get("client") != "codex" {
		t.Errorf("a step of the chart of codex became %v", query)
	}
	tab.Click(`.chip a[aria-label="Remove the filter time"]`)
	tab.Until(`location.search === '?client=codex'`)

	tab.Go("/overview?range=7d&table=cache")
	tab.Until(`document.querySelectorAll('[data-chart] canvas').length === 4`)
	tab.CheckLooks("overview of a week")
}
