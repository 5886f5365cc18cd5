package audit

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// model is the page's data.
type model struct {
	Actor, Action string
	From, To      day
	Cursor        string
	Zone          *time.Location // of the days
	Rows          []row
	Next          string // cursor of the older page; "" if absent
	CSV           string // address of the filtered list as a file
	Now           time.Time
}

// day is a field with a date.
type day struct{ components.FieldModel }

func newDay(name, label, value string) day {
	return day{components.FieldModel{Name: name, Label: label, Value: strings.TrimSpace(value)}}
}

// at returns the start of a day; the zero time if the field is empty.
func (d *day) at(zone *time.Location) (time.Time, bool) {
	if d.Value == "" {
		return time.Time{}, true
	}
	at, err := time.ParseInLocation(time.DateOnly, d.Value, zone)
	if err != nil {
		d.Error = d.Label + " must be a day such as 2026-01-31."
	}
	return at, err == nil
}

// filter returns the filter of the entries; false, with the fields' errors, if a day is not valid. To is the
// last day shown.
func (m *model) filter() (tenants.AuditFilter, bool) {
	filter := tenants.AuditFilter{Actor: m.Actor, Action: m.Action}
	switch m.Action {
	case everything:
		filter.Action = ""
	case "":
		filter.Except = logins
	}
	var fromOK, toOK bool
	filter.From, fromOK = m.From.at(m.Zone)
	filter.To, toOK = m.To.at(m.Zone)
	if !filter.To.IsZero() {
		filter.To = filter.To.AddDate(0, 0, 1)
	}
	return filter, fromOK && toOK
}

func (m *model) filtered() bool {
	return m.Actor != "" || m.Action != "" || m.From.Value != "" || m.To.Value != ""
}

// path returns the list's address with another cursor.
func (m *model) path(cursor string) string {
	return paths.With(paths.Audit, "actor", m.Actor, "action", m.Action, "from", m.From.Value, "to", m.To.Value, "cursor", cursor)
}

// download returns the address of the whole list as a file.
func (m *model) download(filter tenants.AuditFilter) string {
	return paths.With(paths.AuditCSV, "actor", m.Actor, "action", filter.Action, "except", filter.Except, "from", moment(filter.From), "to", moment(filter.To))
}

func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// Filters by the subject of an entry, as in an address. Logins outnumber changes, so the default leaves them
// out.
const (
	everything = "all"
	logins     = "login"
)

// kinds are the list's filters by subject.
func kinds() []components.Option {
	return []components.Option{
		{Value: "", Label: "All except logins"},
		{Value: everything, Label: "Everything"},
		{Value: "key", Label: "API keys"},
		{Value: "provider_key", Label: "Provider keys"},
		{Value: "pipeline", Label: "Pipeline"},
		{Value: "model_window", Label: "Context windows"},
		{Value: "model_prices", Label: "Prices of models"},
		{Value: "model_limits", Label: "Limits of models"},
		{Value: "budgets", Label: "Budgets"},
		{Value: "pattern", Label: "Patterns"},
		{Value: "session", Label: "Sessions"},
		{Value: "pin", Label: "Pins"},
		{Value: "compact", Label: "Compactions asked for"},
		{Value: logins, Label: "Logins"},
		{Value: "member", Label: "Members"},
		{Value: "settings", Label: "Settings"},
		{Value: "retention", Label: "Retention"},
		{Value: "config", Label: "Configuration imports"},
		{Value: "workspace", Label: "Workspace"},
		{Value: "audit", Label: "Audit downloads"},
		{Value: "plan", Label: "Plan"},
		{Value: "checkout", Label: "Checkout"},
		{Value: "portal", Label: "Billing portal"},
	}
}

// options returns kinds, and the requested action if it is not among them.
func (m *model) options() []components.Option {
	options := kinds()
	if !slices.ContainsFunc(options, func(o components.Option) bool { return o.Value == m.Action }) {
		options = append(options, components.Option{Value: m.Action, Label: m.Action})
	}
	return options
}

// row is an entry in the list.
type row struct {
	At      time.Time
	Actor   string
	By      string // the actor's kind; "" for a person
	From    string // address
	Said    sentence
	Action  tenants.Action
	Target  string
	Changes []change
}

// change is a value before and after; "" if absent.
type change struct{ Name, Before, After string }

// written formats a value: a moment in the reader's time zone, anything else unchanged.
func written(ctx context.Context, value string) string {
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return components.MomentIn(at, components.Zone(ctx))
	}
	return value
}

// pipelineChanges returns an entry's changes of pipeline settings, compared with the settings below it; nil
// if the entry is about something else or its settings are no longer valid.
func pipelineChanges(entry *tenants.AuditEntry, below pipeline.Layer) []change {
	if entry.Action != tenants.PipelineSaved && entry.Action != tenants.PipelineRestored {
		return nil
	}
	layer := func(of tenants.Fields) pipeline.Layer { return pipeline.WorkspaceLayer(of["modules"], of["settings"]) }
	found, err := modules.Catalog().Changes(layer(entry.Before), layer(entry.After), below)
	if err != nil {
		return nil
	}
	changes := make([]change, len(found))
	for i, one := range found {
		changes[i] = change{Name: one.Path, Before: one.Before, After: one.After}
	}
	return changes
}

// newRow returns an entry's row. below is the pipeline of a workspace without one of its own.
func newRow(entry *tenants.AuditEntry, below pipeline.Layer) row {
	r := row{At: entry.At, Actor: entry.Actor.Name, From: entry.Actor.From, Action: entry.Action, Target: entry.Target}
	switch {
	case entry.Actor.APIKey != uuid.Nil:
		r.By = "API key"
	case entry.Actor.User == uuid.Nil:
		r.By = "no login"
		if r.Actor == "" {
			r.Actor = "Palimpsest"
		}
	}
	names := map[string]bool{}
	for name := range entry.Before {
		names[name] = true
	}
	for name := range entry.After {
		names[name] = true
	}
	for name := range names {
		if before, after := entry.Before[name], entry.After[name]; before != after {
			r.Changes = append(r.Changes, change{Name: strings.ReplaceAll(name, "_", " "), Before: before, After: after})
		}
	}
	slices.SortFunc(r.Changes, func(a, b change) int { return strings.Compare(a.Name, b.Name) })
	if settings := pipelineChanges(entry, below); settings != nil {
		r.Changes = settings
	}
	r.Said = newSentence(entry, r.Changes)
	return r
}
