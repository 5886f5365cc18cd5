package sessions

import (
	"github.com/a-h/templ"

	"palimpsest/pipeline/session"
	"palimpsest/web/columns"
	"palimpsest/web/components"
)

// columnsOf are the columns beside the session.
func columnsOf() []columns.Drawn[model, row] {
	type column = columns.Drawn[model, row]
	named := func(name, label string) columns.Column { return columns.Column{Name: name, Label: label} }
	return []column{
		{Column: named("requests", "Requests"), Class: "r", Cell: func(_ model, r row) templ.Component { return text(components.Count(int64(r.Exchanges))) }},
		{Column: named("window", "Window filled"), Cell: func(_ model, r row) templ.Component { return spark(r) }},
		{Column: named("levels", "Levels sent"), Head: levelsHead, Cell: func(_ model, r row) templ.Component { return levels(r) }},
		{Column: named("received", "Received"), Class: "r", Head: sorted("Received", session.ByReceived), Cell: func(_ model, r row) templ.Component { return components.Tokens(r.TokensBefore) }},
		{Column: named("sent", "Sent"), Class: "r", Cell: func(_ model, r row) templ.Component { return components.Tokens(r.TokensAfter) }},
		{Column: named("saved", "Not sent"), Class: "r", Cell: func(_ model, r row) templ.Component { return text(r.saved()) }},
		{Column: named("net", "Net"), Class: "r", Head: sorted("Net", session.ByNet), Cell: func(_ model, r row) templ.Component { return components.Sum(r.NetMicroUSD) }},
		{Column: named("reach", "Reach"), Class: "r", Head: reachHead, Cell: func(_ model, r row) templ.Component { return components.CountOrNone(r.Reach) }},
		{Column: named("last", "Last request"), Class: "r", Head: sorted("Last request", session.ByLast), Cell: func(m model, r row) templ.Component { return components.At(r.LastAt, m.Now) }},
	}
}

func sorted(label string, by session.SortKey) func(model) templ.Component {
	return func(m model) templ.Component { return sortHead(m, label, by) }
}
