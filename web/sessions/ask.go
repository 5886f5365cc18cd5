package sessions

import (
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/web/paths"
)

// ask is what the page's address asks for, in its own words.
type ask struct {
	Query, Client, Model, Key, Range, Show, Cursor string
}

func askOf(c echo.Context) ask {
	return ask{
		Query: c.QueryParam("q"), Client: c.QueryParam("client"), Model: c.QueryParam("model"), Key: c.QueryParam("key"),
		Range: c.QueryParam("range"), Show: c.QueryParam("show"), Cursor: c.QueryParam("cursor"),
	}
}

// span is a range of time that the list can be narrowed to.
type span struct {
	Name, Label, Words string
	Length             time.Duration // 0: all
}

func spans() []span {
	return []span{
		{"1h", "1h", "in the last hour", time.Hour}, {"24h", "24h", "in the last 24 hours", 24 * time.Hour},
		{"7d", "7d", "in the last 7 days", 7 * 24 * time.Hour}, {"30d", "30d", "in the last 30 days", 30 * 24 * time.Hour},
		{"", "All", "in this workspace", 0},
	}
}

// span returns the range that is asked for; one that is not known is all.
func (a ask) span() span {
	all := spans()
	for _, span := range all {
		if span.Name == a.Range {
			return span
		}
	}
	return all[len(all)-1]
}

// filter returns which sessions are asked for.
func (a ask) filter(now time.Time) session.Filter {
	filter := session.Filter{Query: a.Query, Client: a.Client, Model: a.Model, Show: session.Show(a.Show), Cursor: a.Cursor, Limit: pageSize}
	if a.Key != "" {
		// A key that is none is nobody's: it must not open the list.
		key, err := uuid.Parse(a.Key)
		if err != nil {
			key = uuid.Max
		}
		filter.APIKey = key
	}
	if length := a.span().Length; length > 0 {
		filter.From = now.Add(-length)
	}
	return filter
}

// path returns the address of what is asked for.
func (a ask) path() string { return a.at(paths.Sessions) }

func (a ask) at(path string) string {
	return paths.With(path, "q", a.Query, "client", a.Client, "model", a.Model, "key", a.Key, "range", a.Range, "show", a.Show, "cursor", a.Cursor)
}

// with returns what is asked for with a change, from its first page on.
func (a ask) with(change func(a *ask)) ask {
	a.Cursor = ""
	change(&a)
	return a
}
