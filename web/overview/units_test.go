package overview

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

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

// A comparison says nothing of a figure that was ten times smaller, or of less than the precision of its parts.
func TestTrendsSayNothingOfWhatTheyCannotCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		now, before int64
		want        string // "" if they are not compared
	}{{1_000, 100, "up 900%"}, {1_001, 100, ""}, {5, 0, ""}, {-5, 100, ""}, {0, 100, "down 100%"}, {100, 100, "no change"}, {10_001, 10_000, "no change"}, {1_094, 1_000, "up 9.4%"}, {1_096, 1_000, "up 10%"}} {
		got, has := relative(c.now, c.before, neither)
		if has != (c.want != "") || has && got.Said+got.Text != c.want {
			t.Errorf("%d after %d: %s%s, %t", c.now, c.before, got.Said, got.Text, has)
		}
	}
	now, before := figures(), figures()
	for after, want := range map[time.Duration]string{91 * time.Millisecond: "down 9.0 ms at p99", 92 * time.Millisecond: "no change", 109 * time.Millisecond: "no change", 110 * time.Millisecond: "up 10 ms at p99"} {
		now.Overhead.P99, before.Overhead.P99 = after, 100*time.Millisecond
		if got := (trend{&now, &before}).overhead().Change; got.Said+got.Text != want {
			t.Errorf("%s after 100ms: %s%s, want %s", after, got.Said, got.Text, want)
		}
	}
}

// The steps of a chart are the shortest that keep it readable.
func TestStepsKeepAChartReadable(t *testing.T) {
	t.Parallel()
	for length, want := range map[time.Duration]time.Duration{
		time.Hour: 30 * time.Minute, 84 * time.Hour: 30 * time.Minute, 85 * time.Hour: time.Hour, 7 * day: time.Hour, 8 * day: 3 * time.Hour,
		168 * 7 * day: 7 * day, 168*7*day + 7*day: 14 * day,
	} {
		if got := stepOf(length); got != want {
			t.Errorf("steps of %s: %s, want %s", length, got, want)
		}
	}
}

// A chosen filter is among the choices although nothing is known of it, and can be taken away.
func TestChosenFiltersAreAmongTheChoices(t *testing.T) {
	t.Parallel()
	known, gone := uuid.New(), uuid.New()
	m := model{Choices: tenants.UsageChoices{Models: []string{"m"}, APIKeys: []tenants.UsageKey{{ID: known, Name: "ci"}, {ID: gone}}}}
	for key, want := range map[uuid.UUID]string{known: "key ci", gone: "key " + gone.String()[:8]} {
		m.query = newQuery(url.Values{"model": {"other"}, "key": {key.String()}}, time.UTC, time.Now())
		n := m.narrowing()
		if list := n.modelOptions(); len(list) != 3 || list[2].Value != "other" || list[2].Label != "other" || n.filterTitle() != "2 filters" {
			t.Errorf("%+v, %s", list, n.filterTitle())
		}
		if list := n.keyOptions(); len(list) != 3 || list[1].Label != "ci" || list[2].Label != gone.String()[:8]+"…" {
			t.Errorf("%+v", list)
		}
		if list := n.filters(); len(list) != 2 || list[1].Title != want || mustParse(t, list[1].Without).Has("key") || mustParse(t, list[1].Without).Get("model") != "other" {
			t.Errorf("%+v", list)
		}
	}
}

// The sentence on the answers says how many requests it is about, and of the times only what is measured.
func TestAnswersAreToldInOneSentence(t *testing.T) {
	t.Parallel()
	var m model
	m.Span = spans()[1]
	for want, answered := range map[string]tenants.Answered{
		"No request in the last 7 days.":                                          {},
		"75.0% of 4 requests answered.":                                           {Requests: 4, Failed: 1},
		"90.0% of the newest 5,000 requests answered.":                            {Requests: tenants.MaxAnswered, Failed: tenants.MaxAnswered / 10},
		"100.0% of 1 request answered. Models take 840 ms (p50) and 3.1 s (p95).": {Requests: 1, P50: 840 * time.Millisecond, P95: 3_100 * time.Millisecond},
	} {
		if m.Answered = answered; (health{&m}).words() != want {
			t.Errorf("%q, want %q", health{&m}.words(), want)
		}
	}
	m.Attention = []item{{Dot: "warn", Title: "a"}, {Dot: "bad", Title: "b"}, {Dot: "bad", Title: "c"}}
	if broken := (health{&m}).broken(); len(broken) != 2 || broken[0].Title != "b" || (health{&m}).brokenWords() != "2 things are broken, first:" || len(m.Attention) != 3 {
		t.Errorf("%+v, %s", broken, health{&m}.brokenWords())
	}
}
