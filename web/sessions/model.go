package sessions

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

// model is the page's data.
type model struct {
	Asked  ask
	Reader tenants.Reader // the person's read access
	Rows   []row
	Next   string // cursor of the older page; "" if absent
	Cut    bool   // sessions older than Next were not searched
	Counts session.Counts
	Active int // sessions of the workspace, regardless of the filter
	Total  int // of the workspace; session.MostCounted also means more
	Keys   []tenants.APIKey
	Found  found
	Unkept string // the requests of which only figures are kept; "" if absent
	Now    time.Time

	Starred  []uuid.UUID // the person's starred sessions
	MatchOwn int         // matching sessions among the starred ones or the person's own, if those are listed

	Wrong        string // a filter's error; "" if valid
	Failed       string // reference in the log if the list did not load; "" otherwise
	BesideFailed string // reference in the log if counts or the names of keys did not load; "" otherwise

	MayDelete   bool
	Delete      *deleteModel // nil unless sessions are to be deleted
	MayExport   bool
	NotExported string // why there is no file; "" unless one was requested

	NoneChosen bool   // no session was chosen to delete
	NoneBeside bool   // no session was chosen to compare
	Deleted    string // the sessions just deleted, "2 sessions"; "" if none

	Erase  *eraseModel // nil unless an end user is to be erased
	Erased string      // the sessions of an end user just erased, "2 sessions"; "" otherwise
}

// unknown is a count that could not be read.
const unknown = -1

// amount formats a count of sessions.
func amount(n int) string {
	if n == unknown {
		return "–"
	}
	if n >= session.MostCounted {
		return components.Count(int64(session.MostCounted)) + "+"
	}
	return components.Count(int64(n))
}

// tab is a part of the list.
type tab struct {
	Label, Count, Path string
	Current            bool
}

func (m model) tabs() []tab {
	own := tab{Label: "Mine", Path: m.Asked.with(func(a *ask) { a.Show = mine }).path(), Current: m.Asked.Show == mine}
	if own.Current {
		own.Count = amount(m.MatchOwn)
	}
	tabs := []tab{own}
	for _, part := range []struct {
		label string
		show  session.Show
	}{
		{"Conversations", session.ShowConversations}, {"Compressed", session.ShowCompressed}, {"Bridged", session.ShowBridged},
		{"Problems", session.ShowProblems}, {"Single calls", session.ShowSingle},
	} {
		named := string(part.show)
		if part.show == session.ShowConversations && !m.Asked.beginsMine {
			named = "" // the list's default
		}
		path := m.Asked.with(func(a *ask) { a.Show = named }).path()
		tabs = append(tabs, tab{part.label, m.count(part.show), path, m.Asked.Show != starred && m.Asked.Show != mine && m.Asked.shown() == part.show})
	}
	path := m.Asked.with(func(a *ask) { a.Show = starred }).path()
	return append(tabs, tab{"Starred", components.Count(int64(len(m.Starred))), path, m.Asked.Show == starred})
}

// count formats the number of sessions in a part of the list.
func (m model) count(show session.Show) string {
	n, known := m.Counts.Of[show]
	if !known {
		n = unknown
	}
	if text := amount(n); !m.Counts.More || strings.HasSuffix(text, "+") {
		return text
	}
	return amount(n) + "+"
}

// matching returns the number of sessions in the current part.
func (m model) matching() string {
	if m.Asked.Show == starred || m.Asked.isMine() {
		return amount(m.MatchOwn)
	}
	return m.count(m.Asked.shown())
}

// singlePath returns the address of the matching single calls if conversations are listed and none matches;
// otherwise "".
func (m model) singlePath() string {
	if m.Asked.shown() == session.ShowSingle || m.Asked.Show == mine || m.Counts.Of[session.ShowSingle] == 0 {
		return ""
	}
	return m.Asked.with(func(a *ask) { a.Show = string(session.ShowSingle) }).path()
}

// chip is a removable filter.
type chip struct{ Text, Label, Path string }

func (m model) chips() []chip {
	var chips []chip
	add := func(name, value string, off func(a *ask)) {
		if value != "" {
			chips = append(chips, chip{name + ":" + value, "Remove the " + name + " filter", m.Asked.with(off).path()})
		}
	}
	add("client", m.Asked.Client, func(a *ask) { a.Client = "" })
	add("model", m.Asked.Model, func(a *ask) { a.Model = "" })
	if m.Asked.Key != "" {
		add("key", m.keyName(), func(a *ask) { a.Key = "" })
	}
	if m.Asked.Member != "" {
		add("member", m.memberName(), func(a *ask) { a.Member = "" })
	}
	add("project", m.Asked.Project, func(a *ask) { a.Project = "" })
	add("label", m.Asked.Label, func(a *ask) { a.Label = "" })
	add("score", map[string]string{"up": "good", "down": "bad"}[m.Asked.Score], func(a *ask) { a.Score = "" })
	if m.Asked.User != "" {
		add("end user", m.userName(), func(a *ask) { a.User = "" })
	}
	return chips
}

// keyName returns the requested key's name.
func (m model) keyName() string {
	for i := range m.Keys {
		if m.Keys[i].ID.String() == m.Asked.Key {
			return m.Keys[i].Name
		}
	}
	return "unknown"
}

// memberName returns the requested person's address.
func (m model) memberName() string {
	for i := range m.Keys {
		if m.Keys[i].CreatedBy.String() == m.Asked.Member && m.Keys[i].Creator != "" {
			return m.Keys[i].Creator
		}
	}
	return m.Asked.Member
}

// userName returns the requested end user's name.
func (m model) userName() string {
	for i := range m.Rows {
		if m.Rows[i].EndUser == m.Asked.User {
			return m.Rows[i].user()
		}
	}
	return components.EndUser("", m.Asked.User)
}

// keyOptions are the API keys by which the list can be filtered.
func (m model) keyOptions() []components.Option {
	options := []components.Option{{Label: "All API keys"}}
	for i := range m.Keys {
		options = append(options, components.Option{Value: m.Keys[i].ID.String(), Label: m.Keys[i].Name})
	}
	return options
}

// noneTitle is the heading of an empty list.
func (m model) noneTitle() string {
	switch {
	case !m.Asked.isWhole():
		return "No matches"
	case m.Asked.Show == mine:
		return "No sessions of yours yet"
	default:
		return "No such sessions yet"
	}
}

// nothing explains an empty list.
func (m model) nothing() string {
	switch {
	case !m.Asked.isWhole():
	case m.Asked.Show == mine:
		return "Conversations through the API keys that you created are listed here."
	case m.Asked.shown() == session.ShowConversations:
		return "Conversations are sessions in which a request continued an earlier one. There are only single calls."
	case m.Asked.Show == starred:
		return "Sessions that you star are listed here."
	default:
		return "There are no sessions of this kind."
	}
	has := amount(m.Total) + " sessions"
	if m.Total == 1 {
		has = "1 session"
	}
	none := strings.TrimSpace("none of them " + m.Asked.span().Words)
	return has + ", " + none + " with these filters. Remove a filter, or clear all."
}

// activeSpan is how long after its last request a session counts as active.
const activeSpan = 5 * time.Minute

// active returns how many sessions of the workspace are active; "" if none.
func (m model) active() string {
	if m.Active <= 0 {
		return ""
	}
	return amount(m.Active) + " active now"
}

// isActive reports whether a session is active.
func (m model) isActive(r row) bool { return m.Now.Sub(r.LastAt) < activeSpan }

// row is a session in the list.
type row struct {
	session.Overview

	Fill   *components.Spark // nil if unknown
	Levels *[4]int           // of the newest request that a module changed; nil if unknown

	Truncated, Failed bool // one of the newest requests was

	Starred  bool // by the person
	Comments int
	Judged   tenants.Judgment // empty unless the person may read the session
}

// star returns a session's star in the list.
func (m model) star(r row) components.StarModel {
	return components.StarModel{Name: r.title(), Path: paths.StarSession(r.ID), Back: m.Asked.path(), Starred: r.Starred}
}

// title returns a session's display name.
func (r row) title() string {
	switch {
	case r.Title != "":
		return render.Visible(r.Title)
	case r.Name != "":
		return render.Visible(r.Name)
	default:
		return "Untitled session"
	}
}

// user returns the name of the session's end user; "" if the application names none.
func (r row) user() string { return components.EndUser(r.EndUserName, r.EndUser) }

// held reports whether the page hides any title from the reader.
func (m model) held() bool {
	for i := range m.Rows {
		if !m.Reader.MayRead(m.Rows[i].APIKey) {
			return true
		}
	}
	return false
}

// id returns the start of the session's id, enough for people to recognize it.
func (r row) id() string { return r.ID.String()[:8] }

func (r row) saved() string {
	if r.Sums.Saved() == 0 {
		return "–"
	}
	return components.Share(r.Sums.Saved(), r.Sums.Sendable())
}

// savedWords is saved in a sentence; "" without a difference.
func (r row) savedWords() string {
	switch saved := r.Sums.Saved(); {
	case saved > 0:
		return components.Share(saved, r.Sums.Sendable()) + " not sent"
	case saved < 0:
		return components.Share(-saved, r.Sums.Sendable()) + " more sent"
	}
	return ""
}

// newRow returns a session with a spark of its newest requests, newest first.
func newRow(overview session.Overview, newest []tenants.Exchange) row {
	r := row{Overview: overview}
	var shares []float64
	for i := len(newest) - 1; i >= 0; i-- {
		if exchange := &newest[i]; exchange.Prompt.Window > 0 && exchange.Prompt.TokensAfter > 0 {
			shares = append(shares, float64(exchange.Prompt.TokensAfter)/float64(exchange.Prompt.Window))
		}
	}
	if len(shares) > 1 {
		r.Fill = components.NewSpark(shares, fmt.Sprintf("the newest %d requests", len(shares)))
	}
	for i := range newest {
		r.Truncated = r.Truncated || newest[i].Prompt.Compression == "truncated"
		r.Failed = r.Failed || newest[i].Answer.Status >= 400
	}
	for i := range newest {
		if levels := newest[i].Prompt.Levels; levels != [4]int{} {
			r.Levels = &levels
			break
		}
	}
	return r
}
