package overview

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// The charts' names in addresses.
const (
	tokensChart   = "tokens"
	cacheChart    = "cache"
	overheadChart = "overhead"
	eventsChart   = "events"
)

const (
	smallChart = 188 // pixels
	mostBars   = 32  // in the chart of events
)

// over returns a chart over the range without its series.
func (m *model) over(points []tenants.Point, step time.Duration) components.Chart {
	chart := components.Chart{
		Kind: components.OverTime, Zone: m.Zone.String(), Sync: "overview", Step: int64(step.Seconds()),
		Zoom: m.page("range", "", "from", "", "to", "", "table", ""), Open: m.requests(), X: make([]int64, len(points)),
	}
	for i := range points {
		chart.X[i] = points[i].From.Unix()
	}
	return chart
}

// requests returns the address of the list of the charts' requests.
func (m *model) requests() string {
	key := ""
	if m.Filter.APIKey != uuid.Nil {
		key = m.Filter.APIKey.String()
	}
	return paths.With(paths.Requests, "client", m.Filter.Client, "model", m.Filter.Model, "key", key)
}

// values returns a figure of each point, nil where absent.
func values(points []tenants.Point, of func(point *tenants.Point) (int64, bool)) []*int64 {
	list := make([]*int64, len(points))
	for i := range points {
		if value, has := of(&points[i]); has {
			list[i] = &value
		}
	}
	return list
}

// tokens is the chart of tokens received and sent.
func (m *model) tokens() components.Chart {
	chart := m.over(m.Points, m.Span.step)
	chart.Gap, chart.Height = "Not sent", 268
	chart.Series = []components.Line{
		{Label: "Received", Color: "lapis-fill", Key: "lapis", Values: values(m.Points, func(p *tenants.Point) (int64, bool) { return p.Sendable(), true })},
		{Label: "Sent", Color: "verdigris-fill", Key: "verd", Fill: 0.22, Values: values(m.Points, func(p *tenants.Point) (int64, bool) { return p.Sendable() - p.Saved(), true })},
	}
	return chart
}

// cache is the chart of the share of input read from the providers' caches.
func (m *model) cache() components.Chart {
	points, step := m.coarse() // a share of few requests jumps
	chart := m.over(points, step)
	chart.Unit, chart.Height = components.InShares, smallChart
	chart.Series = []components.Line{{Label: "Read from cache", Color: "verdigris-fill", Key: "verd", Fill: 0.22, Values: values(points, func(p *tenants.Point) (int64, bool) {
		prompt := p.Prompt()
		return 10_000 * p.CacheRead / max(1, prompt), prompt > 0
	})}}
	return chart
}

// overhead is the chart of the proxy's own latency.
func (m *model) overhead() components.Chart {
	chart := m.over(m.Points, m.Span.step)
	chart.Unit, chart.Height = components.InMicros, smallChart
	chart.Series = []components.Line{
		{Label: "p50", Color: "verdigris-fill", Key: "verd", Values: values(m.Points, func(p *tenants.Point) (int64, bool) {
			return p.Overhead.P50.Microseconds(), p.Overhead.Measured > 0
		})},
		{Label: "p99", Color: "ochre-fill", Key: "ochre", Values: values(m.Points, func(p *tenants.Point) (int64, bool) {
			return p.Overhead.P99.Microseconds(), p.Overhead.Measured > 0
		})},
	}
	return chart
}

// events is the chart of compactions by their deepest level.
func (m *model) events() components.Chart {
	points, step := m.coarse()
	chart := m.over(points, step)
	chart.Bars, chart.Height = true, 160
	for _, kind := range kinds() {
		chart.Series = append(chart.Series, components.Line{
			Label: kind.Title, Color: kind.color, Key: kind.Key, Values: values(points, func(p *tenants.Point) (int64, bool) { return kind.of(&p.Prompts), true }),
		})
	}
	return chart
}

// kind is a kind of compaction event.
type kind struct {
	Title, Key string
	color      string
	of         func(usage *tenants.PromptUsage) int64
}

func kinds() []kind {
	return []kind{
		{"L1", "l1", "l1", func(u *tenants.PromptUsage) int64 { return u.EpochsL1 }},
		{"L2", "l2", "l2", func(u *tenants.PromptUsage) int64 { return u.EpochsL2 }},
		{"L3", "l3", "l3", func(u *tenants.PromptUsage) int64 { return u.EpochsL3 }},
		{"Bridged", "lapis", "lapis-fill", func(u *tenants.PromptUsage) int64 { return u.Bridged }},
		{"Emergency", "minium", "minium-fill", func(u *tenants.PromptUsage) int64 { return u.Emergencies }},
		{"Truncated", "ochre", "ochre-fill", func(u *tenants.PromptUsage) int64 { return u.Truncations }},
	}
}

// coarse returns the points in wider steps, so that bars are visible, with the figures of events and of the
// cache. It leaves out overhead, because its figures can't be added up.
func (m *model) coarse() ([]tenants.Point, time.Duration) {
	factor := (len(m.Points) + mostBars - 1) / mostBars
	if factor <= 1 {
		return m.Points, m.Span.step
	}
	var wide []tenants.Point
	for i := range m.Points {
		if i%factor == 0 {
			wide = append(wide, tenants.Point{From: m.Points[i].From})
		}
		sum, one := &wide[len(wide)-1], &m.Points[i]
		sum.Prompts.EpochsL1 += one.Prompts.EpochsL1
		sum.Prompts.EpochsL2 += one.Prompts.EpochsL2
		sum.Prompts.EpochsL3 += one.Prompts.EpochsL3
		sum.Prompts.Emergencies += one.Prompts.Emergencies
		sum.Prompts.Truncations += one.Prompts.Truncations
		sum.Prompts.Bridged += one.Prompts.Bridged
		sum.Input += one.Input
		sum.CacheRead += one.CacheRead
		sum.CacheWrite += one.CacheWrite
	}
	return wide, time.Duration(factor) * m.Span.step
}

// eventWords returns the span of a bar of events.
func (m *model) eventWords() string {
	_, step := m.coarse()
	return span{step: step}.stepWords()
}

// zoneName names the time zone of the axis.
func (m *model) zoneName() string { return m.Zone.String() }

// chartModel is a card with a chart.
type chartModel struct {
	Name, Title, Sub string
	Legend           []legend
	Below            bool   // the legend is below the chart
	Label            string // the chart in words
	Chart            components.Chart
}

// legend is a chart's legend entry.
type legend struct {
	Title, Key string
	Area       bool
}

func (m *model) tokensCard() chartModel {
	without := ""
	if m.Totals.Reach > 0 {
		without = ", " + m.notSavings()
	}
	return chartModel{
		Name: tokensChart, Title: "Tokens received and sent", Sub: m.Span.stepWords() + ", " + m.zoneName() + without, Chart: m.tokens(),
		Legend: []legend{{Title: "Received", Key: "lapis"}, {Title: "Sent", Key: "verd"}, {Title: "Not sent", Key: "gap", Area: true}},
		Label: "Tokens received from clients and sent to providers, " + m.Span.Words +
			known(m, ": "+components.Short(m.Totals.Sendable())+" received, "+components.Short(m.Totals.Sendable()-m.Totals.Saved())+" sent") + ".",
	}
}

func (m *model) cacheCard() chartModel {
	all := components.Share(m.Totals.CacheRead, m.Totals.Prompt()) + " in all"
	return chartModel{
		Name: cacheChart, Title: "Input read from the cache", Sub: known(m, all+", ") + m.eventWords() + ", " + m.zoneName(), Chart: m.cache(),
		Label: "Share of input that providers read from their caches, " + m.Span.Words + known(m, ": "+all) + ".",
	}
}

func (m *model) overheadCard() chartModel {
	return chartModel{
		Name: overheadChart, Title: "Proxy overhead", Sub: m.zoneName(), Chart: m.overhead(),
		Legend: []legend{{Title: "p50", Key: "verd"}, {Title: "p99", Key: "ochre"}},
		Label: "The proxy’s own work before the provider was called, " + m.Span.Words +
			known(m, ": "+components.Millis(m.Totals.Overhead.P50)+" milliseconds in the median, "+components.Millis(m.Totals.Overhead.P99)+" at the 99th percentile") + ".",
	}
}

func (m *model) eventsCard() chartModel {
	card := chartModel{
		Name: eventsChart, Title: "Compaction events", Sub: m.eventWords() + ", " + m.zoneName(), Chart: m.events(), Below: true,
		Label: "Compaction events by the deepest level, " + m.Span.Words,
	}
	var counts []string
	for _, kind := range kinds() {
		card.Legend = append(card.Legend, legend{kind.Title, kind.Key, true})
		counts = append(counts, kind.Title+" "+components.Count(kind.of(&m.Totals.Prompts)))
	}
	card.Label += known(m, ": "+strings.Join(counts, ", ")) + "."
	return card
}

// known returns words with totals, or "" if the totals did not load.
func known(m *model, words string) string {
	if m.TotalsFailed != "" {
		return ""
	}
	return words
}
