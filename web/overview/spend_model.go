package overview

import (
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// spendModel is the data of the spend page.
type spendModel struct {
	query
	spendTable

	Now        time.Time
	Role       tenants.Role // of the reader
	Mine       bool         // the reader sees only their own spend
	HasBudgets bool         // the dimension can have budgets
	Failed     string       // reference in the log; "" if it loaded
}

// spendTable is the cost of each value of a dimension.
type spendTable struct {
	Of    tenants.Dimension
	Rows  []spendRow
	Total spendRow
}

// spendRow is the cost of one value.
type spendRow struct {
	Label, Title           string
	Cost, Saved            int64 // in millionths of a dollar
	Kept, Requests, Failed int64
	Budget                 *budget // optional
}

func (r *spendRow) add(other *spendRow) {
	r.Cost, r.Saved, r.Kept = r.Cost+other.Cost, r.Saved+other.Saved, r.Kept+other.Kept
	r.Requests, r.Failed = r.Requests+other.Requests, r.Failed+other.Failed
}

// budget is a budget's state this month.
type budget struct {
	Day, Month  int64 // 0 means no limit
	Spent       int64
	Forecast    int64 // of the whole month
	HasForecast bool
	End         time.Time // last day of the month
}

func spendGroups() []group {
	return []group{{tenants.ByMember, "Member"}, {tenants.ByProject, "Project"}, {tenants.ByModel, "Model"}, {tenants.ByClient, "Client"}, {tenants.ByKey, "Key"}}
}

// title returns the heading of the table's first column.
func (t *spendTable) title() string {
	for _, group := range spendGroups() {
		if group.By == t.Of {
			return group.Title
		}
	}
	return "Tag " + t.Of.Tag()
}

const (
	thisMonth = "month"
	lastMonth = "last-month"
	monthForm = "2006-01"
)

// newSpendQuery reads an address, by member and this month by default. A custom range is widened only to half
// hours, like everything else that is added up.
func newSpendQuery(values url.Values, zone *time.Location, now time.Time) query {
	own := components.NewRange(values)
	q := newQuery(values, zone, now)
	q.Page, q.By, q.Table = paths.Spend, tenants.ByMember, ""
	q.Filter.Client, q.Filter.Model, q.Filter.APIKey = "", "", uuid.Nil
	if by, err := tenants.ParseDimension(values.Get("by")); err == nil && by != tenants.ByDay {
		q.By = by
	}
	_, month := tenants.SpendSpan(now)
	name := values.Get("range")
	switch {
	case own.IsAsked():
		if from, to, ok := own.Read(zone); ok {
			q.Filter = tenants.UsageFilter{From: from, To: to}.Aligned()
			q.Span = span{Name: custom, Words: components.RangeWords(q.Filter.From, q.Filter.To, zone)}
			q.Own.Show(q.Filter.From, q.Filter.To, zone)
		}
		return q
	case name == lastMonth:
		month = month.AddDate(0, -1, 0)
	case q.Span.Name == name:
		return q
	default:
		name = thisMonth
	}
	q.Span = span{Name: name, Words: month.Format("January 2006")}
	q.Filter = tenants.UsageFilter{From: month, To: month.AddDate(0, 1, 0)}
	q.Own.Show(q.Filter.From, q.Filter.To, zone)
	return q
}

// spendSpans are the page's ranges of time, by their names in addresses.
func spendSpans() []components.Option {
	return []components.Option{{Value: thisMonth, Label: "This month"}, {Value: lastMonth, Label: "Last month"}, {Value: "7d", Label: "7d"}, {Value: "30d", Label: "30d"}, {Value: "90d", Label: "90d"}}
}

// custom returns the form for a custom range.
func (m *spendModel) custom() components.RangeForm {
	form := m.query.custom()
	form.Hint = "Times in " + m.Zone.String() + ". The range becomes whole half hours."
	return form
}

// csvPath returns the address of the table as a file.
func (m *spendModel) csvPath() string { return m.path(paths.SpendCSV) }

// groupPath returns the page's address with another dimension.
func (m *spendModel) groupPath(by tenants.Dimension) string { return m.page("by", string(by)) }

// by returns the heading of the table.
func (m *spendModel) by() string { return "By " + m.lower() }

// lower returns the title within a sentence.
func (t *spendTable) lower() string { return strings.ToLower(t.title()[:1]) + t.title()[1:] }

// tagHint describes the requests with a tag.
func (m *spendModel) tagHint() string {
	return "A request counts for the value of its header X-Palimpsest-Tag-" + components.Capitalize(m.By.Tag()) + "."
}

// rowPath returns the address of a row's sessions in the range, or of a tag's requests; "" if no list can
// show them.
func (m *spendModel) rowPath(row *spendRow) string {
	name, list := string(m.By), paths.Sessions
	value := row.Label
	switch tag := m.By.Tag(); {
	case value == "" || row.Requests == 0 || value == uuid.Nil.String():
		return ""
	case tag != "" && tag != tenants.ProjectTag:
		name, list, value = "tag", paths.Requests, tenants.Tag{Name: tag, Value: value}.String()
	case tag != "":
		name = "project"
		fallthrough
	default:
		if !m.Role.May(tenants.ReadSessions) {
			return ""
		}
	}
	return paths.With(list, name, value, "from", m.Filter.From.Format(time.RFC3339), "to", m.Filter.To.Format(time.RFC3339))
}

// setPath returns the address to set a row's budget; "" if the reader may not.
func (m *spendModel) setPath(row *spendRow) string {
	switch {
	case row.Label == "" && row != &m.Total || !m.HasBudgets:
		return ""
	case m.By == tenants.ByKey && row != &m.Total:
		if id, err := uuid.Parse(row.Label); err == nil && id != uuid.Nil && m.Role.May(tenants.ManageKeys) {
			return paths.EditKey(id)
		}
		return ""
	case m.Role.May(tenants.ManageSettings):
		return paths.Settings + "#budgets"
	}
	return ""
}

// statementModel is a month's spend for printing.
type statementModel struct {
	Now       time.Time
	Workspace string
	Email     string // of the reader
	Mine      bool   // the reader sees only their own spend
	Month     time.Time
	IsOver    bool
	Tables    []spendTable
	Wrong     string // error in the address; "" if valid
	Failed    string // reference in the log; "" if it loaded
}

func statementGroups() []group {
	return []group{{tenants.ByMember, "Member"}, {tenants.ByProject, "Project"}, {tenants.ByModel, "Model"}, {tenants.ByKey, "Key"}}
}

func (m *statementModel) month() string { return m.Month.Format("January 2006") }

// days returns the statement's first and last day.
func (m *statementModel) days() string {
	return m.Month.Format("2 January") + " to " + m.Month.AddDate(0, 1, -1).Format("2 January 2006") + ", days of UTC"
}

// other returns the address of another month's statement.
func (m *statementModel) other(months int) string {
	return paths.With(paths.SpendStatement, "month", m.Month.AddDate(0, months, 0).Format(monthForm))
}

// spendPath returns the address of the spend page for the same month.
func (m *statementModel) spendPath() string {
	return paths.With(paths.Spend, "from", m.Month.Format(time.RFC3339), "to", m.Month.AddDate(0, 1, 0).Format(time.RFC3339))
}
