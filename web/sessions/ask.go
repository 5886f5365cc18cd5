package sessions

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// ask is the parameters of the page's address, unparsed.
type ask struct {
	Query, Client, Model, Key, Member, Project, User, Range, Show, Cursor string

	Label, Score string // of members

	More  bool // more messages of the archive
	words understood

	workspace  tenants.WorkspaceID
	beginsMine bool // the list begins with the person's own conversations

	Sort components.Sorting // columns by which the list cannot be sorted are dropped

	From, To string           // a custom range, with its zone; "" if absent
	Own      components.Range // the same as typed
	Zone     *time.Location   // the reader's
	from, to time.Time
}

func askOf(c echo.Context, who tenants.Principal, now time.Time) ask {
	asked := newAsk(c.QueryParams(), layout.Zone(c.Request()))
	asked.workspace = who.Workspace.ID
	return asked.understand(now)
}

// newAsk parses an address. An invalid custom range is reported at its fields and does not filter the list.
func newAsk(address url.Values, zone *time.Location) ask {
	a := ask{
		Query: address.Get("q"), Client: address.Get("client"), Model: address.Get("model"), Key: address.Get("key"), Member: address.Get("member"), Project: address.Get("project"), User: address.Get("end_user"),
		Range: address.Get("range"), Show: address.Get("show"), Cursor: address.Get("cursor"), Label: address.Get("label"), Score: address.Get("score"), More: address.Get("more") != "",
		Own: components.NewRange(address), Zone: zone,
		Sort: components.SortingOf(address, string(session.ByLast), string(session.ByNet), string(session.ByReceived)),
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

// span is a range of time for the list.
type span struct {
	Name, Label string
	Words       string        // after "none of them"; "" for all
	Length      time.Duration // 0 means all
}

func spans() []span {
	return []span{
		{"1h", "1h", "in the last hour", time.Hour}, {"24h", "24h", "in the last 24 hours", 24 * time.Hour},
		{"7d", "7d", "in the last 7 days", 7 * 24 * time.Hour}, {"30d", "30d", "in the last 30 days", 30 * 24 * time.Hour},
		{"", "All", "", 0},
	}
}

// span returns the requested range, or all if it is unknown.
func (a ask) span() span {
	all := spans()
	if a.From != "" {
		return span{Name: own, Label: own, Words: "from " + components.RangeWords(a.from, a.to, a.Zone)}
	}
	if a.words.Time != "" {
		return span{Name: own, Label: own, Words: "from " + components.RangeWords(a.words.from, a.words.to, a.Zone)}
	}
	for _, span := range all {
		if span.Name == a.Range {
			return span
		}
	}
	return all[len(all)-1]
}

// starred is the part of the list with the person's starred sessions, of any kind.
const starred = "starred"

// mine is the part of the list with the conversations of the person's own API keys, a member's default.
const mine = "mine"

// begin shows a member their own conversations if the address has no parameters.
func (a ask) begin(role tenants.Role) ask {
	a.beginsMine = role == tenants.Regular
	if a.beginsMine && a.Show == "" && a.isWhole() {
		a.Show = mine
	}
	return a
}

// isWhole reports whether the list has no filter besides its part.
func (a ask) isWhole() bool {
	return a.Query == "" && a.Client == "" && a.Model == "" && a.Key == "" && a.Member == "" && a.Project == "" && a.User == "" && a.Label == "" && a.Score == "" && a.Range == "" && a.From == ""
}

// listed returns the part of the list for a value of an address.
func listed(show string) string {
	switch show {
	case starred:
		return string(session.ShowAll)
	case mine:
		return string(session.ShowConversations)
	}
	return show
}

// only restricts a filter to the person's starred sessions, or to the sessions of the API keys that they
// created, if requested.
func (a ask) only(stars []uuid.UUID, keys []tenants.APIKey, person uuid.UUID, filter *session.Filter) {
	if a.Show == starred {
		filter.IDs, filter.Show = append([]uuid.UUID{}, stars...), session.ShowAll
	}
	if a.isMine() {
		filter.Keys = []uuid.UUID{}
		for i := range keys {
			if keys[i].CreatedBy == person {
				filter.Keys = append(filter.Keys, keys[i].ID)
			}
		}
	}
}

// only reads the inputs of ask.only.
func (h *Handler) only(ctx context.Context, who tenants.Principal, asked ask, filter *session.Filter) error {
	var stars []uuid.UUID
	var keys []tenants.APIKey
	var err error
	if asked.Show == starred {
		if stars, err = h.deps.Stars.Starred(ctx, who.Workspace.ID, who.User.ID); err != nil {
			return err
		}
	}
	if asked.isMine() {
		if keys, err = h.deps.APIKeys.APIKeys(ctx, who.Workspace.ID); err != nil {
			return err
		}
	}
	asked.only(stars, keys, who.User.ID, filter)
	return nil
}

// own is the name of a custom range.
const own = "own"

// rangeForm returns the form for a custom range.
func (a ask) rangeForm() components.RangeForm {
	form := components.RangeForm{
		Range: a.Own, Path: paths.Sessions, Step: "60",
		Hint: "Times in " + a.Zone.String() + ". Sessions that were active in the range are listed.",
	}
	if a.From != "" {
		form.Words = components.RangeWords(a.from, a.to, a.Zone)
	}
	for _, field := range []components.Hidden{{Name: "q", Value: a.Query}, {Name: "client", Value: a.Client}, {Name: "model", Value: a.Model}, {Name: "key", Value: a.Key}, {Name: "member", Value: a.Member}, {Name: "project", Value: a.Project}, {Name: "end_user", Value: a.User}, {Name: "label", Value: a.Label}, {Name: "score", Value: a.Score}, {Name: "show", Value: a.Show}} {
		if field.Value != "" {
			form.Kept = append(form.Kept, field)
		}
	}
	return form
}

// shown returns the requested part of the list, conversations by default.
func (a ask) shown() session.Show {
	switch a.Show {
	case starred:
		return session.ShowAll
	case mine:
		return session.ShowConversations
	}
	return cmp.Or(session.Show(a.Show), session.ShowConversations)
}

// filter returns the requested filter, or a session.Invalid.
func (a ask) filter(now time.Time) (session.Filter, error) {
	filter, err := session.FilterOf(a.workspace, url.Values{
		"q": {a.words.Rest}, "client": {a.Client}, "model": {a.Model}, "key": {a.Key}, "member": {a.Member}, "project": {a.Project}, "end_user": {a.User}, "label": {a.Label}, "score": {a.Score}, "show": {listed(a.Show)}, "cursor": {a.Cursor},
	})
	if err != nil {
		return session.Filter{}, err
	}
	filter.Show = a.shown()
	filter.Limit = pageSize
	if length := a.span().Length; length > 0 {
		filter.From = now.Add(-length)
	}
	if a.From != "" {
		filter.From, filter.To = a.from, a.to
	}
	if a.words.Time != "" {
		filter.From, filter.To = a.words.from, a.words.to
	}
	if sort := (session.Sort{By: session.SortKey(a.Sort.By), Up: a.Sort.Up}); filter.Sorts(sort) {
		filter.Sort = sort
	}
	return filter, nil
}

// wrong is a file's response to an address with unknown values.
func wrong(err error) error { return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err) }

// path returns the address of these parameters.
func (a ask) path() string { return a.at(paths.Sessions) }

func (a ask) at(path string) string {
	more := ""
	if a.More {
		more = "yes"
	}
	return paths.With(path, "q", a.Query, "client", a.Client, "model", a.Model, "key", a.Key, "member", a.Member, "project", a.Project, "end_user", a.User, "label", a.Label, "score", a.Score, "range", a.Range, "from", a.From, "to", a.To, "show", a.Show,
		"sort", a.Sort.By, "dir", a.Sort.Dir(), "cursor", a.Cursor, "more", more)
}

// sorted returns the list's parameters with another order.
func (a ask) sorted(by session.SortKey) string {
	return a.with(func(a *ask) { a.Sort = a.Sort.Next(string(by)) }).path()
}

// sorts reports whether the list supports an order.
func (m model) sorts(by session.SortKey) bool {
	filter, err := m.Asked.filter(m.Now)
	return err == nil && filter.Sorts(session.Sort{By: by, Up: true})
}

// exportPath returns the address that exports all matching sessions.
func (a ask) exportPath() string {
	path := a.at(paths.ExportSessions)
	if path == paths.ExportSessions {
		return path + "?all=yes"
	}
	return path + "&all=yes"
}

// with returns the parameters with a change, from the first page on.
func (a ask) with(change func(a *ask)) ask {
	a.Cursor, a.More = "", false
	change(&a)
	return a
}
