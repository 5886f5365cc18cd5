package overview

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
)

// Spend shows the page of spend.
func (h *Handler) Spend(c echo.Context, who tenants.Principal) error {
	m := h.spend(c, who)
	status := http.StatusOK
	if m.isWrong() {
		status = http.StatusUnprocessableEntity
	}
	return layout.Page(c, status, layout.Frame{Title: "Spend", Section: layout.Spend, Who: who}, spendView(m))
}

// SpendCSV answers with the page's table as a file.
func (h *Handler) SpendCSV(c echo.Context, who tenants.Principal) error {
	m := h.spend(c, who)
	switch {
	case m.isWrong():
		return echo.NewHTTPError(http.StatusBadRequest)
	case m.Failed != "":
		return echo.NewHTTPError(http.StatusInternalServerError)
	}
	return m.sheet().write(layout.CSV(c, "palimpsest-spend.csv"))
}

// spend reads the page. Each part that failed to load has a reference.
func (h *Handler) spend(c echo.Context, who tenants.Principal) *spendModel {
	ctx, now := c.Request().Context(), h.deps.Now()
	m := &spendModel{
		query: newSpendQuery(c.QueryParams(), layout.Zone(c.Request()), now), Now: now, Role: who.Role, Mine: !who.Role.May(tenants.ReadSpend),
	}
	m.Filter = m.Filter.SeenBy(who.User.ID, who.Role.May)
	var err error
	m.spendTable, err = h.spent(ctx, who.Workspace.ID, m.By, m.Filter)
	if err == nil {
		err = h.budgets(ctx, who, m)
	}
	m.Failed = h.failed(ctx, "spend", err)
	return m
}

// spent returns the cost of each value of a dimension, the most expensive first and the row without a value
// last.
func (h *Handler) spent(ctx context.Context, workspace tenants.WorkspaceID, by tenants.Dimension, filter tenants.UsageFilter) (spendTable, error) {
	rows, err := h.deps.Usage.Usage(ctx, workspace, by, filter)
	table := spendTable{Of: by, Rows: make([]spendRow, len(rows)), Total: spendRow{Title: "All"}}
	for i := range rows {
		row := &rows[i]
		table.Rows[i] = spendRow{
			Label: row.Label, Title: rowTitle(by, row), Cost: row.CostMicroUSD, Saved: row.NetMicroUSD, Kept: row.Reach,
			Requests: row.Exchanges, Failed: row.Failures,
		}
		table.Total.add(&table.Rows[i])
	}
	slices.SortStableFunc(table.Rows, func(a, b spendRow) int {
		if (a.Label == "") != (b.Label == "") {
			return cmp.Compare(b.Label, a.Label)
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Title, b.Title))
	})
	return table, err
}

// budgets reads the rows' budgets and this month's spend against them.
func (h *Handler) budgets(ctx context.Context, who tenants.Principal, m *spendModel) error {
	kind, has := map[tenants.Dimension]tenants.SpenderKind{
		tenants.ByMember: tenants.MemberSpends, tenants.ByProject: tenants.ProjectSpends, tenants.ByKey: tenants.KeySpends,
	}[m.By]
	m.HasBudgets = has
	quotas := map[string]tenants.Quota{}
	var whole tenants.Quota
	set, err := h.deps.Readers.Budgets(ctx, who.Workspace.ID)
	for _, budget := range set {
		switch budget.Kind {
		case kind:
			quotas[budget.ID] = budget.Quota
		case tenants.WorkspaceSpends:
			whole = budget.Quota
		default: // of another table
		}
	}
	if err == nil && kind == tenants.KeySpends {
		var keys []tenants.APIKey
		keys, err = h.deps.APIKeys.APIKeys(ctx, who.Workspace.ID)
		for i := range keys {
			quotas[keys[i].ID.String()] = keys[i].Limits.Quota
		}
	}
	if err != nil || !has {
		return err
	}
	_, month := tenants.SpendSpan(m.Now)
	filter := tenants.UsageFilter{From: month, To: m.Now}.SeenBy(who.User.ID, who.Role.May)
	soFar, err := h.spent(ctx, who.Workspace.ID, m.By, filter)
	if err != nil {
		return err
	}
	inMonth := map[string]int64{}
	for _, row := range soFar.Rows {
		inMonth[row.Label] = row.Cost
	}
	for i := range m.Rows {
		row := &m.Rows[i]
		row.Budget = newBudget(quotas[row.Label], inMonth[row.Label], month, m.Now)
	}
	if !m.Mine {
		m.Total.Budget = newBudget(whole, soFar.Total.Cost, month, m.Now)
	}
	return nil
}

// newBudget returns a budget's state this month, or nil without a budget.
func newBudget(quota tenants.Quota, spent int64, month, now time.Time) *budget {
	if !quota.HasBudget() {
		return nil
	}
	b := &budget{Day: quota.DayMicroUSD, Month: quota.MonthMicroUSD, Spent: spent, End: month.AddDate(0, 1, -1)}
	b.Forecast, b.HasForecast = tenants.Forecast(spent, month, month.AddDate(0, 1, 0), now)
	return b
}

// Statement shows a month's spend for printing.
func (h *Handler) Statement(c echo.Context, who tenants.Principal) error {
	ctx, now := c.Request().Context(), h.deps.Now()
	_, current := tenants.SpendSpan(now)
	m := &statementModel{Now: now, Workspace: who.Workspace.Name, Mine: !who.Role.May(tenants.ReadSpend), Email: who.User.Email, Month: current}
	status := http.StatusOK
	if asked := c.QueryParam("month"); asked != "" {
		month, err := time.Parse(monthForm, asked)
		if err != nil || month.After(current) {
			m.Wrong, status = "Write the month as 2026-01, and choose one that has begun. This month is shown.", http.StatusUnprocessableEntity
		} else {
			m.Month = month
		}
	}
	m.IsOver = m.Month.Before(current)
	filter := tenants.UsageFilter{From: m.Month, To: m.Month.AddDate(0, 1, 0)}.SeenBy(who.User.ID, who.Role.May)
	for _, group := range statementGroups() {
		table, err := h.spent(ctx, who.Workspace.ID, group.By, filter)
		if m.Failed = h.failed(ctx, "statement", err); m.Failed != "" {
			break
		}
		m.Tables = append(m.Tables, table)
	}
	frame := layout.Frame{
		Title: "Statement of " + m.month(), Section: layout.Spend, Who: who,
		Breadcrumbs: []layout.Breadcrumb{{Title: "Spend", Path: m.spendPath()}, {Title: "Statement"}},
	}
	return layout.Page(c, status, frame, statementView(m))
}

// sheet is the table as a file.
func (m *spendModel) sheet() *sheet {
	s := &sheet{Title: "Spend", Columns: []string{m.title(), "Id", "Spent (USD)", "Share", "Saved (USD)", "Kept alive", "Requests", "Failed"}}
	if m.HasBudgets {
		s.Columns = append(s.Columns, "Budget a day (USD)", "Budget a month (USD)", "Spent this month (USD)", "Forecast for this month (USD)")
	}
	for i := range m.Rows {
		row := &m.Rows[i]
		cells := []cell{
			nameCell(row.Title), nameCell(row.Label), moneyCell(row.Cost), shareCell(row.Cost, m.Total.Cost), moneyCell(row.Saved),
			countCell(row.Kept), countCell(row.Requests), countCell(row.Failed),
		}
		if m.HasBudgets {
			cells = append(cells, row.Budget.cells()...)
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

// cells returns a budget's cells in a file, empty where it has no limit or no data.
func (b *budget) cells() []cell {
	cells := make([]cell, 4)
	if b == nil {
		return cells
	}
	if b.Day > 0 {
		cells[0] = moneyCell(b.Day)
	}
	if b.Month > 0 {
		cells[1] = moneyCell(b.Month)
	}
	cells[2] = moneyCell(b.Spent)
	if b.HasForecast {
		cells[3] = moneyCell(b.Forecast)
	}
	return cells
}

// percent returns the spent share of a month's budget, at most 100.
func (b *budget) percent() int64 { return min(100, b.Spent*100/b.Month) }

// words describes a budget's state.
func (b *budget) words() string {
	if b.Month == 0 {
		return components.Money(b.Day) + " a day"
	}
	return components.Cents(b.Spent) + " of " + components.Money(b.Month)
}

// forecast predicts the month's spend; "" if it would be a guess.
func (b *budget) forecast() string {
	if !b.HasForecast || b.Month == 0 {
		return ""
	}
	return "about " + components.Cents(b.Forecast) + " by " + b.End.Format("2 Jan")
}

// isOver reports whether the forecast is above the budget.
func (b *budget) isOver() bool { return b.HasForecast && b.Month > 0 && b.Forecast > b.Month }
