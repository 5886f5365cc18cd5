package sessions

import (
	"strings"
	"time"

	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/expression"
	"palimpsest/pipeline/session"
	"palimpsest/web/components"
)

// understood is what a query says about time and people. The rest of it is searched for.
type understood struct {
	Rest     string // the query without the words below
	Time     string // the words that name a time; "" if absent
	Mine     string // the words that name the person's own sessions; "" if absent
	from, to time.Time
}

// ofOneself finds words for one's own sessions.
var ofOneself = expression.New(`(?i)\b(?:mine|(?:in |of |from )?my (?:own )?(?:sessions?|conversations?|chats?))\b`)

// inQuotes finds text that is searched for as it is.
var inQuotes = expression.New(`"[^"]*"|“[^”]*”`)

// understand reads a query. A range chosen beside it takes the place of a time in words.
func understand(query string, now time.Time, hasRange bool) understood {
	u := understood{Rest: query}
	if !hasRange {
		if u.Time, u.from, u.to = search.Time(query, now); u.Time != "" {
			u.Rest = without(u.Rest, u.Time)
		}
	}
	open := inQuotes.ReplaceAllString(u.Rest, " ")
	if u.Mine = ofOneself.FindString(open); u.Mine != "" {
		u.Rest = without(u.Rest, u.Mine)
	}
	return u
}

// without returns a query without some of its words.
func without(query, words string) string {
	return strings.Join(strings.Fields(strings.Replace(query, words, " ", 1)), " ")
}

// understand reads the query's words, unless the address has a range of its own.
func (a ask) understand(now time.Time) ask {
	a.words = understand(a.Query, now.In(a.Zone), a.Range != "" || a.From != "")
	return a
}

// isMine reports whether only the person's own sessions are listed.
func (a ask) isMine() bool { return a.Show == mine || a.words.Mine != "" }

// days describes a span, by its days if it begins and ends at midnight.
func days(from, to time.Time, zone *time.Location) string {
	first, last := from.In(zone), to.In(zone).AddDate(0, 0, -1)
	isMidnight := func(at time.Time) bool { return at.Hour() == 0 && at.Minute() == 0 }
	switch {
	case !isMidnight(first) || !isMidnight(last):
		return components.RangeWords(from, to, zone)
	case !first.Before(last):
		return first.Format("2 Jan")
	}
	return first.Format("2 Jan") + " to " + last.Format("2 Jan")
}

// understoodChips are the parts of a query that narrow the list, each with the address without it.
func (m model) understoodChips() []chip {
	var chips []chip
	words := m.Asked.words
	if words.Time != "" {
		text := words.Time + ": " + days(words.from, words.to, m.Asked.Zone)
		chips = append(chips, chip{text, "Search at any time", m.Asked.with(func(a *ask) { a.Query = without(a.Query, words.Time) }).path()})
	}
	switch {
	case words.Mine != "":
		chips = append(chips, chip{words.Mine, "Search everyone’s sessions", m.Asked.with(func(a *ask) { a.Query = without(a.Query, words.Mine) }).path()})
	case m.Asked.Show == mine && m.Asked.Query != "":
		chips = append(chips, chip{"Mine", "Search everyone’s sessions", m.Asked.with(func(a *ask) { a.Show = string(session.ShowConversations) }).path()})
	}
	return chips
}
