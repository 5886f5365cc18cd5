package overview

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
)

// figures returns usage in which every figure is another.
func figures() tenants.Totals {
	var u tenants.Totals
	u.Exchanges, u.Prompts.Bridged = 100, 4
	u.Prompts.EpochsL1, u.Prompts.EpochsL2, u.Prompts.EpochsL3, u.Prompts.Emergencies, u.Prompts.Truncations = 1, 2, 3, 5, 6
	u.TokensBefore, u.TokensAfter, u.Input, u.CacheRead, u.CacheWrite = 9_000, 7_000, 100, 500, 400
	u.Overhead = tenants.Overhead{P50: 1500 * time.Microsecond, P99: 42 * time.Millisecond, Measured: 10}
	return u
}

// lines returns the values of a chart's lines by their labels.
func lines(m *model) map[string][]int64 {
	found := map[string][]int64{}
	for _, chart := range []chartModel{m.tokensCard(), m.cacheCard(), m.overheadCard(), m.eventsCard()} {
		for _, line := range chart.Chart.Series {
			for _, value := range line.Values {
				found[line.Label] = append(found[line.Label], *value)
			}
		}
	}
	return found
}

// Every line of a chart has its own figure, in the unit of the chart, and the words beside it say the same.
func TestChartsHoldTheirOwnFigureInTheirUnit(t *testing.T) {
	t.Parallel()
	var m model
	m.Totals, m.Span, m.Zone = figures(), spans()[1], time.UTC
	m.Points = []tenants.Point{{Totals: figures(), From: time.Unix(0, 0)}}
	for label, want := range map[string]int64{
		"Received": 9_000, "Sent": 7_000, "Read from cache": 5_000, "p50": 1_500, "p99": 42_000, "L1": 1, "L2": 2, "L3": 3, "Bridged": 4, "Emergency": 5, "Truncated": 6,
	} {
		if got := lines(&m)[label]; !slices.Equal(got, []int64{want}) {
			t.Errorf("%s: %v, want %d", label, got, want)
		}
	}
	for card, want := range map[string]string{
		m.tokensCard().Label: "9.00k received, 7.00k sent", m.cacheCard().Label: "50.0% in all", m.overheadCard().Label: "1.5 milliseconds in the median, 42 at the 99th",
		m.eventsCard().Label: "L1 1, L2 2, L3 3, Bridged 4, Emergency 5, Truncated 6.",
	} {
		if !strings.Contains(card, want) {
			t.Errorf("%q does not say %q", card, want)
		}
	}
}

// Totals that did not load are left out of the words beside the charts.
func TestChartsSayNothingOfTotalsThatDidNotLoad(t *testing.T) {
	t.Parallel()
	m := model{TotalsFailed: "a1b2c3d4"}
	m.Span, m.Zone = spans()[1], time.UTC
	for _, card := range []chartModel{m.tokensCard(), m.cacheCard(), m.overheadCard(), m.eventsCard()} {
		if words := strings.ReplaceAll(card.Sub+card.Label, m.Span.Words, ""); strings.ContainsAny(words, "0–") || !strings.HasSuffix(card.Label, ".") {
			t.Errorf("%s: %q", card.Title, words)
		}
	}
}

// Bars of wider steps hold the sums of the points below them, also where the last has fewer points.
func TestWiderBarsAddUpTheirPoints(t *testing.T) {
	t.Parallel()
	for _, points := range []int{1, mostBars, mostBars + 1, 3*mostBars - 1, 3 * mostBars} {
		var m model
		m.Span, m.Zone = spans()[1], time.UTC
		for i := range points {
			m.Points = append(m.Points, tenants.Point{Totals: figures(), From: time.Unix(int64(i)*3600, 0)})
		}
		wide, step := m.coarse()
		factor := int(step / time.Hour)
		if want := (points + factor - 1) / factor; len(wide) != want || len(wide) > mostBars {
			t.Errorf("%d points: %d bars of %s, want %d", points, len(wide), step, want)
		}
		for i := range wide {
			if got, want := wide[i].From.Unix(), int64(i*factor*3600); got != want {
				t.Errorf("%d points: bar %d begins at %d, want %d", points, i, got, want)
			}
			below := int64(min(factor, points-i*factor))
			for _, kind := range kinds() {
				one := figures()
				if got := kind.of(&wide[i].Prompts); got != below*kind.of(&one.Prompts) {
					t.Errorf("%d points: bar %d has %d of %s", points, i, got, kind.Title)
				}
			}
		}
	}
}

// Each figure is set against the same figure of the time before, a share against a share of its own whole.
func TestTrendsCompareTheirOwnFigure(t *testing.T) {
	t.Parallel()
	now, before := figures(), figures()
	now.NetMicroUSD, before.NetMicroUSD, now.Epochs, before.Epochs = 300, 200, 30, 40
	before.Exchanges, before.TokensBefore, before.TokensAfter = 80, 10_000, 9_000
	before.Input, before.CacheRead, before.CacheWrite = 1_000, 500, 500
	before.Overhead.P99 = 21 * time.Millisecond
	for name, c := range map[string]struct {
		got  figure
		want string
	}{
		"net": {trend{&now, &before}.net(), "up 50% up"}, "saved": {trend{&now, &before}.saved(), "up 12.2 pt up"}, "cache": {trend{&now, &before}.cache(), "up 25.0 pt up"},
		"overhead": {trend{&now, &before}.overhead(), "up 21 ms at p99 down"}, "epochs": {trend{&now, &before}.epochs(), "down 25% flat"},
		"requests": {trend{&now, &before}.requests(), "up 25% flat"},
	} {
		if got := c.got.Change.Said + c.got.Change.Text + " " + c.got.Change.Class; got != c.want || !c.got.Has {
			t.Errorf("%s: %q, %t, want %q", name, got, c.got.Has, c.want)
		}
	}
	for exchanges, want := range map[int64]bool{leastBasis - 1: false, leastBasis: true} {
		now.Exchanges, before.Exchanges = 20, exchanges
		if got := (trend{&now, &before}).net().Has; got != want {
			t.Errorf("%d requests before are a basis: %t", exchanges, got)
		}
	}
	for exchanges, want := range map[int64]bool{20*basisShare + 1: false, 20 * basisShare: true} {
		now.Exchanges, before.Exchanges = exchanges, 20
		if got := (trend{&now, &before}).net().Has; got != want {
			t.Errorf("20 requests before are a basis for %d: %t", exchanges, got)
		}
	}
}

// A custom range is in the page's links as such, beside no named one.
func TestLinksKeepTheCustomRange(t *testing.T) {
	t.Parallel()
	q := newQuery(url.Values{"from": {"2027-03-01T00:00"}, "to": {"2027-03-01T01:10"}}, time.FixedZone("east", 3600), time.Now())
	kept := newQuery(mustParse(t, q.page("by", "model")), time.UTC, time.Now())
	if q.Filter.To.Sub(q.Filter.From) != 90*time.Minute || kept.Filter.From != q.Filter.From || kept.Filter.To != q.Filter.To || kept.By != tenants.ByModel {
		t.Errorf("%+v leads to %+v", q.Filter, kept.Filter)
	}
	if values := mustParse(t, q.page()); values.Has("range") {
		t.Errorf("the link names a range as well: %v", values)
	}
	if values := mustParse(t, q.preset("24h")); values.Has("from") || values.Has("to") || values.Get("range") != "24h" {
		t.Errorf("another range: %v", values)
	}
}

// mustParse returns the query of an address.
func mustParse(t *testing.T, address string) url.Values {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Query()
}
