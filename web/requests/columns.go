package requests

import (
	"github.com/a-h/templ"

	"palimpsest/tenants"
	"palimpsest/web/columns"
	"palimpsest/web/components"
)

// columnsOf are the columns beside the time.
func columnsOf() []columns.Drawn[model, row] {
	type column = columns.Drawn[model, row]
	named := func(name, label string) columns.Column { return columns.Column{Name: name, Label: label} }
	return []column{
		{Column: named("session", "Session, client"), Class: "nowrap", Cell: sessionCell},
		{Column: named("model", "Model"), Cell: modelCell},
		{Column: named("key", "Key, provider key"), Cell: keyCell},
		{Column: named("status", "Status"), Class: "nowrap", Cell: statusCell},
		{Column: named("received", "Received"), Class: "r", Head: sorted("Received", tenants.ByReceived), Cell: tokensCell(func(r row) int { return r.TokensBefore })},
		{Column: named("sent", "Sent"), Class: "r", Head: sorted("Sent", tenants.BySent), Cell: tokensCell(func(r row) int { return r.TokensAfter })},
		{Column: named("cached", "Cached"), Class: "r", Head: sorted("Cached", tenants.ByCached), Cell: tokensCell(func(r row) int { return r.CacheRead })},
		{Column: named("overhead", "Overhead"), Class: "r", Head: sorted("Overhead", tenants.ByOverhead), Cell: overheadCell},
		{Column: named("upstream", "Upstream"), Class: "r", Head: sorted("Upstream", tenants.ByUpstream), Cell: upstreamCell},
		{Column: named("cost", "Cost"), Class: "r", Head: sorted("Cost", tenants.ByCost), Cell: func(_ model, r row) templ.Component { return components.Price(r.CostMicroUSD) }},
		{Column: named("modules", "Modules"), Cell: func(_ model, r row) templ.Component { return outcomes(r) }},
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
