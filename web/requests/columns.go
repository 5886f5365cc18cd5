package requests

import (
	"github.com/a-h/templ"

	"palimpsest/tenants"
	"palimpsest/web/columns"
	"palimpsest/web/components"
)

// columnsOf are the columns after the time.
func columnsOf() []columns.Drawn[model, row] {
	type column = columns.Drawn[model, row]
	return []column{
		{Label: "Session, client", Class: "nowrap", Cell: sessionCell},
		{Label: "Model", Cell: modelCell},
		{Label: "Key, provider key", Cell: keyCell},
		{Label: "Status", Class: "nowrap", Cell: statusCell},
		{Label: "Received", Class: "r", Head: sorted("Received", tenants.ByReceived), Cell: tokensCell(func(r row) int { return r.Prompt.TokensBefore })},
		{Label: "Sent", Class: "r", Head: sorted("Sent", tenants.BySent), Cell: tokensCell(func(r row) int { return r.Prompt.TokensAfter })},
		{Label: "Cached", Class: "r", Head: sorted("Cached", tenants.ByCached), Cell: tokensCell(func(r row) int { return r.Tokens.CacheRead })},
		{Label: "Overhead", Class: "r", Head: sorted("Overhead", tenants.ByOverhead), Cell: overheadCell},
		{Label: "Upstream", Class: "r", Head: sorted("Upstream", tenants.ByUpstream), Cell: upstreamCell},
		{Label: "Cost", Class: "r", Head: sorted("Cost", tenants.ByCost), Cell: func(_ model, r row) templ.Component { return components.Price(r.Cost.CostMicroUSD) }},
		{Label: "Modules", Cell: func(_ model, r row) templ.Component { return outcomes(r) }},
	}
}

func sorted(label string, by tenants.Figure) func(model) templ.Component {
	return func(m model) templ.Component {
		return components.SortHead(label, string(by), m.sorting(), m.sorted(by), "r")
	}
}

func tokensCell(of func(row) int) func(model, row) templ.Component {
	return func(_ model, r row) templ.Component { return components.TokensOrNone(int64(of(r))) }
}

// cost returns the cost of the page's requests.
func (m *model) cost() (sum int64) {
	for i := range m.Rows {
		sum += m.Rows[i].Cost.CostMicroUSD
	}
	return sum
}
