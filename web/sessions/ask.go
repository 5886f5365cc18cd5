package sessions

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
	"palimpsest/web/views"
)

// ask is what the page's address asks for, in its own words.
type ask struct {
	Query, Client, Model, Key, Range, Show, Cursor string

	From, To string           // a range of one's own, with its zone; empty: none
	Own      components.Range // the same as it was typed
	Zone     *time.Location   // the reader's
	from, to time.Time
}

func askOf(c echo.Context) ask { return newAsk(c.QueryParams(), layout.Zone(c.Request())) }

// newAsk reads an address. A range of one's own that is none is said at its fields, and
// the list is not narrowed to it.
func newAsk(address url.Values, zone *time.Location) ask {
	a := ask{
		Query: address.Get("q"), Client: address.Get("client"), Model: address.Get("model"), Key: address.Get("key"),
		Range: address.Get("range"), Show: address.Get("show"), Cursor: address.Get("cursor"),
		Own: components.NewRange(address), Zone: zone,
	}
	if !a.Own.IsAsked() {
		return a
	}
	from, to, ok := a.Own.Read(zone)
	if ok {
		a.Range, a.from, a.to = "", from, to
		a.From, a.To = from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)
		a.Own.Show(from, to, zone)
	}
	return a
}

// filters returns what can be saved of an address, see views.Filters.
func filters(zone *time.Location) views.Filters {
	return func(address url.Values) (url.Values, error) {
		a := newAsk(address, zone)
		_, keyErr := uuid.Parse(a.Key)
		switch {
		case a.Own.IsWrong():
			return nil, tenants.Invalid{Field: "range", Message: "must have two moments, the first before the second"}
		case a.Range != a.span().Name:
			return nil, tenants.Invalid{Field: "range", Message: "must be one of those that the list offers"}
		case a.Key != "" && keyErr != nil:
			return nil, tenants.Invalid{Field: "key", Message: "is no id of an API key"}
		case !slices.Contains(parts(), session.Show(a.Show)):
			return nil, tenants.Invalid{Field: "show", Message: "must be a part of the list"}
		}
		asked, err := url.Parse(a.with(func(*ask) {}).path())
		if err != nil {
			return nil, fmt.Errorf("address of filters: %w", err)
		}
		return asked.Query(), nil
	}
}

// parts are the parts of the list, in the order of their tabs.
func parts() []session.Show {
	return []session.Show{session.ShowAll, session.ShowCompressed, session.ShowBridged, session.ShowProblems}
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
	if a.From != "" {
		return span{Name: own, Label: own, Words: "from " + components.RangeWords(a.from, a.to, a.Zone)}
	}
	for _, span := range all {
		if span.Name == a.Range {
			return span
		}
	}
	return all[len(all)-1]
}

// own is the name of a range of one's own.
const own = "own"

// rangeForm returns the form for a range of one's own.
func (a ask) rangeForm() components.RangeForm {
	form := components.RangeForm{
		Range: a.Own, Path: paths.Sessions, Step: "60",
		Hint: "Times in " + a.Zone.String() + ". Sessions that were active in the range are listed.",
	}
	if a.From != "" {
		form.Words = components.RangeWords(a.from, a.to, a.Zone)
	}
	for _, field := range []components.Hidden{{Name: "q", Value: a.Query}, {Name: "client", Value: a.Client}, {Name: "model", Value: a.Model}, {Name: "key", Value: a.Key}, {Name: "show", Value: a.Show}} {
		if field.Value != "" {
			form.Kept = append(form.Kept, field)
		}
	}
	return form
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
	if a.From != "" {
		filter.From, filter.To = a.from, a.to
	}
	return filter
}

// path returns the address of what is asked for.
func (a ask) path() string { return a.at(paths.Sessions) }

func (a ask) at(path string) string {
	return paths.With(path, "q", a.Query, "client", a.Client, "model", a.Model, "key", a.Key, "range", a.Range, "from", a.From, "to", a.To, "show", a.Show, "cursor", a.Cursor)
}

// exportPath returns where all that match are exported.
func (a ask) exportPath() string {
	path := a.at(paths.ExportSessions)
	if path == paths.ExportSessions {
		return path + "?all=yes"
	}
	return path + "&all=yes"
}

// with returns what is asked for with a change, from its first page on.
func (a ask) with(change func(a *ask)) ask {
	a.Cursor = ""
	change(&a)
	return a
}
