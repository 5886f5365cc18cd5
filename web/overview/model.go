package overview

import (
	"slices"
	"time"

	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// span is a range of time that the page can show.
type span struct {
	Name, Words string
	length      time.Duration
	step        time.Duration // of the chart
	StepWords   string
}

func spans() []span {
	const day = 24 * time.Hour
	return []span{
		{"24h", "last 24 hours", day, 30 * time.Minute, "per half hour"},
		{"7d", "last 7 days", 7 * day, 3 * time.Hour, "per 3 hours"},
		{"30d", "last 30 days", 30 * day, 12 * time.Hour, "per 12 hours"},
	}
}

// group is a way to split the table.
type group struct {
	By    tenants.Dimension
	Title string
}

func groups() []group {
	return []group{{tenants.ByClient, "Client"}, {tenants.ByModel, "Model"}, {tenants.ByKey, "Key"}}
}

// model is the page.
type model struct {
	Range    span
	By       tenants.Dimension
	From, To time.Time
	Now      time.Time

	Totals tenants.Totals
	Points []tenants.Point
	Rows   []tenants.UsageRow

	Balance tenants.Balance // in the range
	Advice  cost.Advice     // by the last seven days
	Advised bool            // there is Advice
	Notices []cost.Notice   // of the last seven days

	BalanceFailed, NoticesFailed string // references in the log; empty: fine

	TotalsFailed, PointsFailed, RowsFailed string // references in the log; empty: fine
}

// newModel returns the page for a range and a split by name; unknown names mean
// the first choice: seven days, by client.
func newModel(named, by string, now time.Time) model {
	m := model{Range: spans()[1], By: tenants.ByClient, Now: now}
	for _, span := range spans() {
		if span.Name == named {
			m.Range = span
		}
	}
	for _, group := range groups() {
		if string(group.By) == by {
			m.By = group.By
		}
	}
	m.To = now.Truncate(m.Range.step).Add(m.Range.step)
	m.From = m.To.Add(-m.Range.length)
	return m
}

// path returns the page with another range or split; empty keeps the one it has.
func (m model) path(named string, by tenants.Dimension) string {
	if named == "" {
		named = m.Range.Name
	}
	if by == "" {
		by = m.By
	}
	return paths.With(paths.Overview, "range", named, "by", string(by))
}

func (m model) saved() int64 { return m.Totals.TokensBefore - m.Totals.TokensAfter }

// prompt returns the size of all prompts as providers reported it.
func (m model) prompt() int64 { return m.Totals.Input + m.Totals.CacheRead + m.Totals.CacheWrite }

// groupTitle returns the heading of the table's first column.
func (m model) groupTitle() string {
	for _, group := range groups() {
		if group.By == m.By {
			return group.Title
		}
	}
	return ""
}

// rowTitle returns what a row of the table is called.
func (m model) rowTitle(row tenants.UsageRow) string {
	switch {
	case m.By == tenants.ByClient:
		return components.ClientName(row.Label)
	case row.Name != "":
		return row.Name
	case row.Label != "":
		return row.Label
	default:
		return "unknown"
	}
}

// rowPath returns the sessions of a row; empty where the list cannot show them.
func (m model) rowPath(row tenants.UsageRow) string {
	switch {
	case row.Label == "":
		return ""
	case m.By == tenants.ByClient:
		return paths.With(paths.Sessions, "client", row.Label)
	case m.By == tenants.ByModel:
		return paths.With(paths.Sessions, "model", row.Label)
	default:
		return ""
	}
}

// chart returns the tokens received and sent in each step.
func (m model) chart() string {
	chart := components.Chart{Kind: components.OverTime}
	received := components.Line{Label: "Received", Colour: "lapis-fill", Key: "lapis", Fill: 0.17}
	sent := components.Line{Label: "Sent", Colour: "verdigris-fill", Key: "verd", Fill: 0.22}
	for _, point := range m.Points {
		chart.X = append(chart.X, point.From.Unix())
		received.Values = append(received.Values, new(point.TokensBefore))
		sent.Values = append(sent.Values, new(point.TokensAfter))
	}
	chart.Series = []components.Line{received, sent}
	return chart.JSON()
}

// used returns the steps of the chart in which anything happened, newest first.
func (m model) used() []tenants.Point {
	var used []tenants.Point
	for _, point := range slices.Backward(m.Points) {
		if point.Exchanges > 0 {
			used = append(used, point)
		}
	}
	return used
}
