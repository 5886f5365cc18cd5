package requests

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// model is the list's data.
type model struct {
	Query  url.Values // the address's parameters, except empty ones
	Filter tenants.ExchangeFilter
	Fields fields
	Zone   *time.Location // of the days
	Role   tenants.Role
	Now    time.Time

	Invalid bool   // a field has an error, so there was no search
	Failed  string // reference of a failure; "" if absent

	Rows   []row
	Next   string // cursor of the older page; "" if absent
	Count  int    // of all requests, if none matches
	Opened *opened

	Names           map[uuid.UUID]string // of API keys and provider keys
	Keys            []tenants.APIKey
	Clients, Models []string
}

// fields are the form's fields with input or errors.
type fields struct{ ID, Tag, User, From, To components.FieldModel }

// spans are the ranges offered; the last is unlimited.
func spans() []span {
	const day = 24 * time.Hour
	return []span{{"1h", "1h", time.Hour}, {"24h", "24h", day}, {"7d", "7d", 7 * day}, {"30d", "30d", 30 * day}, {"", "All", 0}}
}

type span struct {
	Name, Label string
	length      time.Duration // 0 means all
}

// newModel reads the address's parameters. The names are not known yet.
func newModel(query url.Values, role tenants.Role, zone *time.Location, now time.Time) model {
	m := model{Query: url.Values{}, Role: role, Zone: zone, Now: now, Names: map[uuid.UUID]string{}}
	for _, name := range append(tenants.ExchangeFilterNames(), "range", "from", "to", "since", "until", "sort", "dir", "cursor", "open") {
		for _, value := range query[name] {
			if value = strings.TrimSpace(value); value != "" && !slices.Contains(m.Query[name], value) {
				m.Query.Add(name, value)
			}
		}
	}
	m.Fields = fields{
		ID:   components.FieldModel{Name: "id", Label: "Request id", Value: m.Query.Get("id")},
		Tag:  components.FieldModel{Name: "tag", Label: "Tag", Hint: "name=value"},
		User: components.FieldModel{Name: "end_user", Label: "End user", Value: m.Query.Get("end_user"), Hint: "The application’s id, or its hash"},
		From: components.FieldModel{Name: "from", Label: "From", Value: m.Query.Get("from"), Hint: "Days of " + zone.String()},
		To:   components.FieldModel{Name: "to", Label: "To", Value: m.Query.Get("to")},
	}
	var err error
	if m.Filter, err = tenants.ParseExchangeFilter(m.Query); err != nil {
		m.refuse(err)
	}
	m.Filter.Cursor, m.Filter.Limit = m.Query.Get("cursor"), pageSize
	asked := m.sorting()
	m.Filter.Order = tenants.ExchangeOrder{By: tenants.Figure(asked.By), Up: asked.Up}
	m.readRange()
	return m
}

// refuse shows an error at its field, by default the id's.
func (m *model) refuse(err error) {
	invalid, _ := err.(tenants.Invalid) //nolint:errorlint // ParseExchangeFilter returns nothing else
	m.Invalid = true
	if invalid.Field == "tag" {
		m.Fields.Tag.Value = m.Query["tag"][len(m.Query["tag"])-1]
		m.Fields.Tag.Error = components.FieldError("Tag", invalid.Message)
		return
	}
	label := map[string]string{"id": "Request id", "session": "Session", "key": "Key", "status": "Status", "error_from": "Error from"}[invalid.Field]
	m.Fields.ID.Error = components.FieldError(label, invalid.Message)
}

// readRange reads a range of days, or otherwise a span until now.
func (m *model) readRange() {
	day := func(field *components.FieldModel) time.Time {
		if field.Value == "" {
			return time.Time{}
		}
		at, err := time.ParseInLocation(time.DateOnly, field.Value, m.Zone)
		if err != nil {
			m.Invalid, field.Error = true, field.Label+" must be a day such as 2026-01-31."
		}
		return at
	}
	if m.readStep() {
		return
	}
	m.Filter.From, m.Filter.To = day(&m.Fields.From), day(&m.Fields.To)
	if !m.Filter.To.IsZero() {
		m.Filter.To = m.Filter.To.AddDate(0, 0, 1) // the last day shown
	}
	if !m.Filter.From.IsZero() || !m.Filter.To.IsZero() {
		m.Query.Del("range")
		return
	}
	for _, span := range spans() {
		if span.Name == m.Query.Get("range") && span.length > 0 {
			m.Filter.From = m.Now.Add(-span.length)
		}
	}
}

// readStep reads the step of a clicked chart and reports whether the address names one. Typed days take
// precedence.
func (m *model) readStep() bool {
	since, err := time.Parse(time.RFC3339, m.Query.Get("since"))
	until, wrong := time.Parse(time.RFC3339, m.Query.Get("until"))
	hasDays := m.Query.Get("from") != "" || m.Query.Get("to") != ""
	if err != nil || wrong != nil || !since.Before(until) || hasDays {
		m.Query.Del("since")
		m.Query.Del("until")
		return false
	}
	m.Filter.From, m.Filter.To = since, until
	m.Query.Del("range")
	return true
}

// filtered reports whether the list has filters.
func (m *model) filtered() bool {
	for name := range m.Query {
		if name != "cursor" && name != "open" && name != "sort" && name != "dir" {
			return true
		}
	}
	return false
}

// with returns the address of the list's first page with one value changed; "" removes the value.
func (m *model) with(name, value string) string {
	query := maps.Clone(m.Query)
	for _, page := range []string{"cursor", "open", name} {
		query.Del(page)
	}
	if name == "range" {
		query.Del("from")
		query.Del("to")
	}
	if name == "range" || name == "since" {
		query.Del("since")
		query.Del("until")
	}
	if value != "" {
		query.Set(name, value)
	}
	return address(query)
}

// page returns the list's address at a cursor; "" means the newest page.
func (m *model) page(cursor string) string { return m.with("cursor", cursor) }

// sorting returns the list's order, by time or by a figure.
func (m *model) sorting() components.Sorting {
	keys := []string{""}
	for _, figure := range tenants.Figures() {
		keys = append(keys, string(figure))
	}
	return components.SortingOf(m.Query, keys...)
}

// sorted returns the address of the list's first page in the order after a click on a column's head.
func (m *model) sorted(by tenants.Figure) string {
	query, next := maps.Clone(m.Query), m.sorting().Next(string(by))
	for name, value := range map[string]string{"cursor": "", "open": "", "sort": next.By, "dir": next.Dir()} {
		query.Del(name)
		if value != "" {
			query.Set(name, value)
		}
	}
	return address(query)
}

// here returns the current page's address without an open request.
func (m *model) here() string {
	query := maps.Clone(m.Query)
	query.Del("open")
	return address(query)
}

// opening returns the current page's address with a request open.
func (m *model) opening(id uuid.UUID) string {
	query := maps.Clone(m.Query)
	query.Set("open", id.String())
	return address(query)
}

func address(query url.Values) string {
	if len(query) == 0 {
		return paths.Requests
	}
	return paths.Requests + "?" + query.Encode()
}

// csv returns the address of the list as a file.
func (m *model) csv() string {
	query := maps.Clone(m.Query)
	for _, name := range []string{"cursor", "open", "range", "from", "to", "since", "until", "sort", "dir"} {
		query.Del(name)
	}
	for name, at := range map[string]time.Time{"from": m.Filter.From, "to": m.Filter.To} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	if len(query) == 0 {
		return paths.RequestsCSV
	}
	return paths.RequestsCSV + "?" + query.Encode()
}

// chip is a removable filter.
type chip struct{ Text, Label, Path string }

func (m *model) chips() []chip {
	var chips []chip
	for _, name := range []string{"session", "key", "client", "model", "end_user", "status", "error_from", "miss", "module"} {
		value := m.Query.Get(name)
		if value == "" {
			continue
		}
		shown := value
		if id, err := uuid.Parse(value); err == nil {
			shown = m.called(id)
		}
		switch name {
		case "end_user":
			shown = m.userName(value)
		case "module":
			module, outcome, _ := strings.Cut(value, ":")
			shown = strings.TrimSpace(components.ModuleName(module) + " " + outcome)
		case "miss":
			shown = components.MissName(value)
		}
		chips = append(chips, chip{labelOf(name) + ":" + shown, "Remove the filter " + labelOf(name), m.with(name, "")})
	}
	if m.Query.Get("since") != "" {
		chips = append(chips, chip{"time:" + components.RangeWords(m.Filter.From, m.Filter.To, m.Zone), "Remove the filter time", m.with("since", "")})
	}
	for _, tag := range m.Query["tag"] {
		query := maps.Clone(m.Query)
		query["tag"] = slices.DeleteFunc(slices.Clone(query["tag"]), func(other string) bool { return other == tag })
		if len(query["tag"]) == 0 {
			query.Del("tag")
		}
		query.Del("cursor")
		query.Del("open")
		chips = append(chips, chip{"tag:" + tag, "Remove the tag " + tag, address(query)})
	}
	return chips
}

// userName returns an end user's name.
func (m *model) userName(user string) string {
	for i := range m.Rows {
		if m.Rows[i].Request.EndUser == user {
			return m.Rows[i].user()
		}
	}
	return components.EndUser("", user)
}

func labelOf(name string) string {
	if name == "end_user" {
		return "end user"
	}
	if name == "error_from" {
		return "error"
	}
	return name
}

// called returns a key's name, or enough of its id for people to recognize it.
func (m *model) called(id uuid.UUID) string { return nameOf(m.Names, id) }

func nameOf(names map[uuid.UUID]string, id uuid.UUID) string {
	switch name := names[id]; {
	case name != "":
		return name
	case id == uuid.Nil:
		return "–"
	default:
		return id.String()[:8]
	}
}

// choice returns a field with its options; the first one means any.
func (m *model) choice(name, label string) components.FieldModel {
	return components.FieldModel{Name: name, Label: label, Value: m.Query.Get(name)}
}

func (m *model) statuses() []components.Option {
	return []components.Option{{Value: "", Label: "any"}, {Value: "2xx", Label: "2xx, answered"}, {Value: "4xx", Label: "4xx, refused"}, {Value: "5xx", Label: "5xx, failed"}}
}

func (m *model) errorsFrom() []components.Option {
	return []components.Option{{Value: "", Label: "any"}, {Value: "provider", Label: "provider"}, {Value: "proxy", Label: "proxy"}}
}

func (m *model) misses() []components.Option {
	options := []components.Option{{Value: "", Label: "any"}}
	for _, cause := range cost.Causes() {
		options = append(options, components.Option{Value: string(cause), Label: components.MissName(string(cause))})
	}
	return options
}

func (m *model) modules() []components.Option {
	options := []components.Option{{Value: "", Label: "any"}}
	for _, module := range modules.Catalog().Names() {
		options = append(options,
			components.Option{Value: module + ":" + pipeline.Applied, Label: components.ModuleName(module) + " applied"},
			components.Option{Value: module + ":" + pipeline.Failed, Label: components.ModuleName(module) + " failed"})
	}
	return withValue(options, m.Query.Get("module"))
}

func (m *model) keyOptions() []components.Option {
	options := []components.Option{{Value: "", Label: "any"}}
	for _, key := range m.Keys {
		options = append(options, components.Option{Value: key.ID.String(), Label: key.Name})
	}
	return withValue(options, m.Query.Get("key"))
}

func named(names []string, value string, shown func(string) string) []components.Option {
	options := []components.Option{{Value: "", Label: "any"}}
	for _, name := range names {
		options = append(options, components.Option{Value: name, Label: shown(name)})
	}
	return withValue(options, value)
}

// withValue returns the options, with the requested value added if missing.
func withValue(options []components.Option, value string) []components.Option {
	if slices.ContainsFunc(options, func(o components.Option) bool { return o.Value == value }) {
		return options
	}
	return append(options, components.Option{Value: value, Label: value})
}

func same(text string) string { return text }

// row is a request in the list.
type row struct {
	tenants.Exchange

	Key, ProviderKey string
	Modules          []pipeline.ModuleReport
}

func newRow(exchange *tenants.Exchange, names map[uuid.UUID]string) row {
	return row{
		Exchange: *exchange, Key: nameOf(names, exchange.Request.APIKey), ProviderKey: nameOf(names, exchange.Answer.ProviderKey),
		Modules: reportOf(&exchange.Prompt).Modules,
	}
}

// reportOf returns the modules' report; it is empty for an exchange that they did not process.
func reportOf(prompt *tenants.ExchangePrompt) pipeline.Report {
	var report pipeline.Report
	if json.Unmarshal(prompt.Report, &report) != nil {
		return pipeline.Report{}
	}
	return report
}

// user returns the name of the request's end user; "" if the application named none.
func (r row) user() string { return components.EndUser(r.Request.EndUserName, r.Request.EndUser) }

// id returns the start of the request's id, enough for people to recognize it: ids begin with the time, and
// this part is exact to a millisecond.
func (r row) id() string { return r.ID.String()[:shownID] }

const shownID = 13

// upstream returns the provider's time to the last byte.
func (r row) upstream() time.Duration { return max(0, r.Times.Duration-r.Times.Overhead) }

// did returns the modules that changed something or failed, and the number of the others.
func (r row) did() (did []pipeline.ModuleReport, others int) {
	for _, module := range r.Modules {
		if module.Outcome == pipeline.Applied || module.Outcome == pipeline.Failed {
			did = append(did, module)
		} else {
			others++
		}
	}
	return did, others
}

// ran lists all modules with their outcomes.
func (r row) ran() string {
	names := make([]string, len(r.Modules))
	for i, module := range r.Modules {
		names[i] = components.ModuleName(module.Name) + ": " + outcomeWord(module.Outcome)
	}
	return strings.Join(names, ", ")
}

// statusClass returns the status's class in the filter.
func (r row) statusClass() string { return strconv.Itoa(r.Answer.Status/100) + "xx" }

// statusTag returns a status's color.
func statusTag(status int) string {
	switch {
	case status < 400:
		return "ok"
	case status == 499:
		return ""
	case status < 500:
		return "warn"
	default:
		return "bad"
	}
}

// statusText returns a status with its common name.
func statusText(status int) string {
	if status == 499 {
		return "499 left"
	}
	return strconv.Itoa(status)
}

// found returns the workspace's number of requests, for a list without matches.
func (m *model) found() string {
	switch {
	case m.Count > counted:
		return fmt.Sprintf("There are more than %s requests", components.Count(counted))
	case m.Count == 1:
		return "There is 1 request"
	default:
		return fmt.Sprintf("There are %s requests", components.Count(int64(m.Count)))
	}
}

// isNew reports whether an unfiltered list is empty.
func (m *model) isNew() bool {
	return !m.filtered() && m.Filter.Cursor == "" && len(m.Rows) == 0 && m.Failed == "" && !m.Invalid
}

// tagsKept returns the tags that the form keeps beside the typed one.
func (m *model) tagsKept() []string {
	if m.Fields.Tag.Error != "" {
		return m.Query["tag"][:len(m.Query["tag"])-1]
	}
	return m.Query["tag"]
}

// unfolded reports whether the form shows its filters at once, because one is invalid or a range of days is
// set, for which there is no chip.
func (m *model) unfolded() bool {
	return m.Fields.Tag.Error != "" || m.Fields.From.Value != "" || m.Fields.To.Value != ""
}

func (r row) hasSession() bool { return r.Request.Session != uuid.Nil }

// seconds formats a duration: "0.42 s", "12 s", "3 min".
func seconds(d time.Duration) string {
	switch {
	case d < time.Second:
		return components.Millis(d) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	default:
		return components.Span(d)
	}
}
