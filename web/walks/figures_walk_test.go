package walks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// used records exchanges of some hours before now.
func used(t *testing.T, person *webtest.Person, hours ...int) {
	t.Helper()
	key := uuid.New()
	var all []tenants.Exchange
	for _, hour := range hours {
		for minute := range 12 {
			all = append(all, tenants.Exchange{
				ID: uuid.Must(uuid.NewV7()), At: time.Now().Add(-time.Duration(hour)*time.Hour - time.Duration(5*minute)*time.Minute),
				Request: tenants.ExchangeRequest{
					APIKey: key, Endpoint: "/v1/messages", Model: "claude-sonnet-4-5", Client: "claude-code",
				},
				Answer: tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: 200},
				Prompt: tenants.ExchangePrompt{Compression: "none", TokensBefore: 10_111, TokensAfter: 4_111, Window: 200_000},
				Tokens: tenants.ExchangeTokens{Input: 1_000, CacheRead: 9_000, Output: 50},
				Cost:   tenants.ExchangeCost{CostMicroUSD: 21_111},
			})
		}
	}
	if err := person.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, all); err != nil {
		t.Fatal(err)
	}
}

// Kerning pulls the decimal point of tabular figures into the digit before it, where it is
// lost on screens of one pixel a point.
func TestTabularFiguresKeepTheirDecimalPoint(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	used(t, person, 1, 2, 3)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	for _, path := range []string{"/overview?range=24h", "/requests", "/keys", "/pipeline"} {
		tab.Go(path)
		const kerned = `[...document.querySelectorAll('body *')].map(e => [e, getComputedStyle(e)]).filter(([, s]) => s.fontVariantNumeric.includes('tabular-nums'))`
		if bad := browsertest.Evaluate[[]string](tab, kerned+`.filter(([, s]) => s.fontKerning !== 'none').map(([e]) => e.outerHTML.slice(0, 80))`); len(bad) > 0 {
			t.Errorf("%s: kerned figures: %v", path, bad)
		}
	}
	tab.Go("/overview?range=24h")
	widths := browsertest.Evaluate[[]float64](tab, `(() => {
		const figure = document.querySelector('[data-testid="ledger"] dd.v'), wide = text => { figure.textContent = text; const r = document.createRange(); r.selectNodeContents(figure); return r.getBoundingClientRect().width; };
		return [wide('7.1.7.1.7'), 3 * wide('7') + 2 * wide('1') + 4 * wide('.')];
	})()`)
	if fmt.Sprintf("%.1f", widths[0]) != fmt.Sprintf("%.1f", widths[1]) {
		t.Errorf("figures beside one another take %.2f px, each alone %.2f px", widths[0], widths[1])
	}
}

// Hours without a request have no share of cache hits: the chart is empty there, neither at
// nothing nor a line to what comes next.
func TestCacheChartIsEmptyWhereNothingWasAsked(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	used(t, person, 1, 2, 3, 20, 21, 22)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	tab.Go("/overview?range=24h")
	tab.Until(charted)
	// Share of the pixels of a column of the chart that are drawn, as hours before now.
	const drawn = `(hours => {
		const card = [...document.querySelectorAll('[data-chart]')].find(e => JSON.parse(e.dataset.chart).unit === 'share');
		const {x} = JSON.parse(card.dataset.chart), canvas = card.querySelector('canvas'), over = card.querySelector('.u-over'), ratio = canvas.width / canvas.clientWidth;
		const left = over.offsetLeft + over.clientWidth * (1 - hours * 3600 / (x.at(-1) - x[0]));
		const pixels = canvas.getContext('2d').getImageData(Math.round(left * ratio), Math.round(over.offsetTop * ratio), 1, Math.round(over.clientHeight * ratio)).data;
		let count = 0;
		for (let i = 3; i < pixels.length; i += 4) if (pixels[i] > 0) count++;
		return 100 * count / (pixels.length / 4);
	})`
	for hours, isBusy := range map[int]bool{2: true, 21: true, 8: false, 12: false, 16: false} {
		if share := browsertest.Evaluate[float64](tab, fmt.Sprintf("%s(%d)", drawn, hours)); share > 40 != isBusy {
			t.Errorf("%d hours ago %.0f%% of the chart is drawn", hours, share)
		}
	}
	tab.Picture("cache chart with idle time")
}
