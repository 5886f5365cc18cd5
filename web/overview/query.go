package overview

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

const (
	day = 24 * time.Hour

	custom      = "custom"
	customSteps = 168 // of a custom range's chart, at most
)

// span is a range of time for the page.
type span struct {
	Name   string // in the address
	Words  string // "last 7 days"
	Before string // the range before: "the 7 days before"
	length time.Duration
	step   time.Duration // of the charts
}

func spans() []span {
	return []span{
		{"24h", "last 24 hours", "the day before", day, 30 * time.Minute},
		{"7d", "last 7 days", "the week before", 7 * day, time.Hour},
		{"30d", "last 30 days", "the 30 days before", 30 * day, 6 * time.Hour},
		{"90d", "last 90 days", "the 90 days before", 90 * day, day},
	}
}

// stepWords returns the length of a step.
func (s span) stepWords() string {
	if s.step < time.Hour {
		return "per half hour"
	}
	if s.step == time.Hour {
		return "per hour"
	}
	if s.step == day {
		return "per day"
	}
	return "per " + components.Span(s.step)
}

// group is a dimension of the table.
type group struct {
	By    tenants.Dimension
	Title string
}

func groups() []group {
	return []group{{tenants.ByClient, "Client"}, {tenants.ByModel, "Model"}, {tenants.ByKey, "Key"}}
}

// query is the address's parsed parameters.
type query struct {
	Span   span
	By     tenants.Dimension
	Filter tenants.UsageFilter
	Zone   *time.Location
	Table  string // the chart shown as a table; "" if absent
	Page   string // the page's own path

	Own components.Range
}

// newQuery parses an address. Unknown names mean the default: seven days, by client, without filters. If a
// custom range is not valid, its fields show the error and the page shows seven days.
func newQuery(values url.Values, zone *time.Location, now time.Time) query {
	q := query{
		Span: spans()[1], By: tenants.ByClient, Zone: zone, Page: paths.Overview, Table: values.Get("table"),
		Filter: tenants.UsageFilter{Client: values.Get("client"), Model: values.Get("model")},
		Own:    components.NewRange(values),
	}
	q.Filter.APIKey, _ = uuid.Parse(values.Get("key")) // uuid.Nil for an invalid id means all keys
	for _, span := range spans() {
		if span.Name == values.Get("range") {
			q.Span = span
		}
	}
	for _, group := range groups() {
		if string(group.By) == values.Get("by") {
			q.By = group.By
		}
	}
	if !q.Own.IsAsked() || !q.own() {
		q.Filter.To = now.UTC().Truncate(q.Span.step).Add(q.Span.step)
		q.Filter.From = q.Filter.To.Add(-q.Span.length)
	}
	if !q.isWrong() {
		q.Own.Show(q.Filter.From, q.Filter.To, zone)
	}
	return q
}

// own reads the custom range, widened to whole steps of the charts, and reports whether it is valid.
func (q *query) own() bool {
	from, to, ok := q.Own.Read(q.Zone)
	if !ok {
		return false
	}
	step := stepOf(to.Sub(from))
	q.Filter.From, q.Filter.To = from.UTC().Truncate(step), to.UTC().Add(step-1).Truncate(step)
	words := components.RangeWords(q.Filter.From, q.Filter.To, q.Zone)
	q.Span = span{Name: custom, Words: words, Before: "the time before", length: q.Filter.To.Sub(q.Filter.From), step: step}
	return true
}

func (q *query) isWrong() bool { return q.Own.IsWrong() }

// stepOf returns the shortest step that keeps a range's chart readable.
func stepOf(length time.Duration) time.Duration {
	for _, step := range []time.Duration{30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day} {
		if length/step <= customSteps {
			return step
		}
	}
	return 14 * day
}

// path returns a path with the query's parameters, changed by names and values. An empty value removes a
// name.
func (q *query) path(to string, namesAndValues ...string) string {
	of := map[string]string{"by": string(q.By), "client": q.Filter.Client, "model": q.Filter.Model, "table": q.Table, "range": q.Span.Name}
	if q.Filter.APIKey != uuid.Nil {
		of["key"] = q.Filter.APIKey.String()
	}
	if q.Span.Name == custom {
		of["range"] = ""
		of["from"], of["to"] = q.Filter.From.Format(time.RFC3339), q.Filter.To.Format(time.RFC3339)
	}
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		of[namesAndValues[i]] = namesAndValues[i+1]
	}
	pairs := make([]string, 0, 2*len(of))
	for name, value := range of {
		pairs = append(pairs, name, value)
	}
	return paths.With(to, pairs...)
}

// page returns the page's own address with changes.
func (q *query) page(namesAndValues ...string) string {
	return q.path(q.Page, namesAndValues...)
}

// preset returns the page's address with another range.
func (q *query) preset(name string) string { return q.page("range", name, "from", "", "to", "") }

// csv returns the address of a table as a file.
func (q *query) csv(part string) string { return q.path(paths.OverviewCSV, "table", "", "part", part) }

// custom returns the form for a custom range.
func (q *query) custom() components.RangeForm {
	form := components.RangeForm{
		Range: q.Own, Path: q.Page, Kept: q.kept([]string{"from", "to", "range"}), Step: "1800",
		Hint: "Times in " + q.Zone.String() + ". The range becomes whole steps of the charts.",
	}
	if q.Span.Name == custom {
		form.Words = q.Span.Words
	}
	return form
}

// kept returns the hidden fields of a form, except those that it sets itself.
func (q *query) kept(but []string) []components.Hidden {
	address, err := url.Parse(q.page("table", ""))
	if err != nil {
		return nil // our own address always parses
	}
	var fields []components.Hidden
	for name, values := range address.Query() {
		if !slices.Contains(but, name) && values[0] != "" {
			fields = append(fields, components.Hidden{Name: name, Value: values[0]})
		}
	}
	slices.SortFunc(fields, func(a, b components.Hidden) int { return strings.Compare(a.Name, b.Name) })
	return fields
}
