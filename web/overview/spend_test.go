package overview

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Spend is of this month unless the address names another range. Months are of UTC.
func TestSpendIsOfTheMonthUnlessAsked(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 3, 40, 0, 0, time.FixedZone("east", 4*3600)) // still December in UTC
	for address, want := range map[string]struct{ from, to, words string }{
		"":                 {"2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "December 2026"},
		"range=month":      {"2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "December 2026"},
		"range=unknown":    {"2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "December 2026"},
		"range=last-month": {"2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", "November 2026"},
		"range=30d":        {"2026-12-02T00:00:00Z", "2027-01-01T00:00:00Z", "last 30 days"},
		"from=2026-05-01T10:10&to=2026-05-01T10:20": {"2026-05-01T10:00:00Z", "2026-05-01T10:30:00Z", "1 May 10:00 to 1 May 10:30"},
	} {
		values, err := url.ParseQuery(address)
		if err != nil {
			t.Fatal(err)
		}
		q := newSpendQuery(values, time.UTC, now)
		if from, to := q.Filter.From.Format(time.RFC3339), q.Filter.To.Format(time.RFC3339); from != want.from || to != want.to || q.Span.Words != want.words {
			t.Errorf("%q: %s to %s, %s", address, from, to, q.Span.Words)
		}
		again := newSpendQuery(mustParse(t, q.page()), time.UTC, now)
		if again.Filter != q.Filter || again.Span != q.Span {
			t.Errorf("%q: the page's own address leads to %+v of %s", address, again.Filter, again.Span.Words)
		}
	}
	q := newSpendQuery(url.Values{"range": {"30d"}, "by": {"day"}, "client": {"codex"}, "model": {"m"}, "key": {uuid.NewString()}}, time.UTC, now)
	if q.By != tenants.ByMember || q.Filter.Client+q.Filter.Model != "" || q.Filter.APIKey != uuid.Nil {
		t.Errorf("the overview's parameters: by %s, %+v", q.By, q.Filter)
	}
}

// A budget says what of it is spent, and the forecast once enough of the month has passed.
func TestBudgetSaysHowFarItGoes(t *testing.T) {
	t.Parallel()
	month := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	half := month.Add(14 * day)
	for name, c := range map[string]struct {
		quota    tenants.Quota
		spent    int64
		now      time.Time
		percent  int64
		words    string
		forecast string
		over     bool
	}{
		"within":       {tenants.Quota{MonthMicroUSD: 10_000_000}, 5_000_000, half, 50, "$5.00 of $10.00", "about $10.00 by 28 Feb", false},
		"over":         {tenants.Quota{MonthMicroUSD: 10_000_000}, 5_010_000, half, 50, "$5.01 of $10.00", "about $10.02 by 28 Feb", true},
		"spent":        {tenants.Quota{MonthMicroUSD: 10_000_000}, 25_000_000, half, 100, "$25.00 of $10.00", "about $50.00 by 28 Feb", true},
		"too early":    {tenants.Quota{MonthMicroUSD: 10_000_000}, 5_000_000, month.Add(time.Hour), 50, "$5.00 of $10.00", "", false},
		"a day's only": {tenants.Quota{DayMicroUSD: 3_000_000}, 5_000_000, half, 0, "$3.00 a day", "", false},
	} {
		b := newBudget(c.quota, c.spent, month, c.now)
		if b.words() != c.words || b.forecast() != c.forecast || b.isOver() != c.over {
			t.Errorf("%s: %q, %q, %t", name, b.words(), b.forecast(), b.isOver())
		}
		if c.quota.MonthMicroUSD > 0 && b.percent() != c.percent {
			t.Errorf("%s: %d%%", name, b.percent())
		}
	}
	if b := newBudget(tenants.Quota{}, 1, month, half); b != nil {
		t.Errorf("without a budget: %+v", b)
	}
}

// A row leads to a list only if there is one for it that the reader may see.
func TestRowsLeadOnlyToListsThatShowThem(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	const span = "from=2026-03-01T00%3A00%3A00Z"
	var m spendModel
	m.Filter.From, m.Filter.To = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	const to = "to=2026-03-02T00%3A00%3A00Z"
	for _, c := range []struct {
		role tenants.Role
		by   tenants.Dimension
		row  spendRow
		want string
	}{
		{tenants.Admin, tenants.ByKey, spendRow{Label: id, Requests: 1}, "/sessions?" + span + "&key=" + id + "&" + to},
		{tenants.Admin, tenants.ByKey, spendRow{Label: id}, ""},
		{tenants.Admin, tenants.ByKey, spendRow{Requests: 1}, ""},
		{tenants.Admin, tenants.ByKey, spendRow{Label: uuid.Nil.String(), Requests: 1}, ""},
		{tenants.Billing, tenants.ByKey, spendRow{Label: id, Requests: 1}, ""},
		{tenants.Admin, tenants.ByProject, spendRow{Label: "shop", Requests: 1}, "/sessions?" + span + "&project=shop&" + to},
		{tenants.Billing, tenants.ByProject, spendRow{Label: "shop", Requests: 1}, ""},
		{tenants.Billing, "tag:team", spendRow{Label: "web", Requests: 1}, "/requests?" + span + "&tag=team%3Dweb&" + to},
	} {
		m.Role, m.By = c.role, c.by
		if got := m.rowPath(&c.row); got != c.want {
			t.Errorf("a row by %s of %s leads a %s to %q, want %q", c.by, c.row.Label, c.role, got, c.want)
		}
	}
}

// A budget is set where it is kept: a key's on the key's page, all others in the settings.
func TestBudgetIsSetWhereItIsKept(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	for _, c := range []struct {
		role  tenants.Role
		by    tenants.Dimension
		label string
		want  string
	}{
		{tenants.Admin, tenants.ByKey, id, "/keys/" + id + "/edit"},
		{tenants.Admin, tenants.ByKey, uuid.Nil.String(), ""},
		{tenants.Admin, tenants.ByMember, id, "/settings#budgets"},
		{tenants.Admin, tenants.ByMember, "", ""},
		{tenants.Billing, tenants.ByKey, id, ""},
		{tenants.Billing, tenants.ByMember, id, ""},
	} {
		m := spendModel{Role: c.role, HasBudgets: true}
		m.By, m.Rows = c.by, []spendRow{{Label: c.label}}
		if got := m.setPath(&m.Rows[0]); got != c.want {
			t.Errorf("the budget of %q by %s is set by %s at %q, want %q", c.label, c.by, c.role, got, c.want)
		}
		if got := m.setPath(&m.Total); (got != "") != (c.role == tenants.Admin) || got != "" && got != "/settings#budgets" {
			t.Errorf("the whole budget is set by %s at %q", c.role, got)
		}
		m.HasBudgets = false
		if m.setPath(&m.Rows[0])+m.setPath(&m.Total) != "" {
			t.Errorf("a budget by %s is set although that dimension has no budgets", c.by)
		}
	}
}
