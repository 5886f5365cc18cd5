package sessions

import (
	"github.com/a-h/templ"

	"palimpsest/pipeline/session"
	"palimpsest/web/columns"
	"palimpsest/web/components"
)

// columnsOf are the columns after the session's.
func columnsOf() []columns.Drawn[model, row] {
	type column = columns.Drawn[model, row]
	return []column{
		{Label: "Requests", Class: "r", Cell: func(_ model, r row) templ.Component { return text(components.Count(int64(r.Sums.Exchanges))) }},
		{Label: "Window filled", Cell: func(_ model, r row) templ.Component { return spark(r) }},
		{Label: "Levels sent", Head: levelsHead, Cell: func(_ model, r row) templ.Component { return levels(r) }},
		{Label: "Received", Class: "r", Head: sorted("Received", session.ByReceived), Cell: func(_ model, r row) templ.Component { return components.Tokens(r.Sums.TokensBefore) }},
		{Label: "Sent", Class: "r", Cell: func(_ model, r row) templ.Component { return components.Tokens(r.Sums.TokensAfter) }},
		{Label: "Not sent", Class: "r", Cell: func(_ model, r row) templ.Component { return text(r.saved()) }},
		{Label: "Cost", Class: "r", Cell: func(_ model, r row) templ.Component { return components.Sum(r.Sums.CostMicroUSD) }},
		{Label: "Net", Class: "r", Head: sorted("Net", session.ByNet), Cell: func(_ model, r row) templ.Component { return components.Sum(r.Sums.NetMicroUSD) }},
		{Label: "Kept alive", Class: "r", Head: reachHead, Cell: func(_ model, r row) templ.Component { return components.CountOrNone(r.Sums.Reach) }},
		{Label: "Last request", Class: "r", Head: sorted("Last request", session.ByLast), Cell: func(m model, r row) templ.Component { return components.At(r.LastAt, m.Now) }},
	}
}

func sorted(label string, by session.SortKey) func(model) templ.Component {
	return func(m model) templ.Component { return sortHead(m, label, by) }
}
