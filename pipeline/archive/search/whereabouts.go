package search

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"palimpsest/pipeline/expression"
)

// Whereabouts are the session's name and the time span in a question. Absent parts are zero.
type Whereabouts struct {
	session  []string // terms
	From, To time.Time
}

// The gains in rank of a document in the named session or time: enough to decide between similar calls, but
// not enough to lift documents on another topic.
const (
	sessionGain = 0.5
	timeGain    = 0.25
)

// inSession finds a session's name in a text.
var inSession = expression.New(`(?i)\b(?:in|from|during|of) (?:the|my|our|that) (?:[a-z]+ )?(?:session|conversation|chat|thread)s? (?:about|called|named|titled|on|with)\s*:?\s*` +
	`(?:` + quotedName + `|([^\n,.;:?!]+))[,:]?`)

// quotedName is a name in quotation marks.
const quotedName = "\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»|`([^`\n]+)`"

// Locate parses the session and the time in a question asked at now. It returns the question without a quoted
// session name, because the name is not part of the search. Days and weeks are in now's time zone, and weeks
// begin on Monday.
func Locate(text string, now time.Time) (rest string, where Whereabouts) {
	rest = text
	if match := inSession.FindStringSubmatch(text); match != nil {
		name := strings.Join(match[1:], "")
		eachTerm(name, func(term string) {
			if !isCommon(term) && !isLetter(term) && !slices.Contains(where.session, term) {
				where.session = append(where.session, term)
			}
		})
		if match[len(match)-1] == "" {
			rest = strings.TrimSpace(strings.Replace(text, match[0], " ", 1))
		}
	}
	if strings.TrimSpace(rest) == "" {
		rest = text
	}
	_, where.From, where.To = span(rest, now)
	return rest, where
}

// Time returns the words of a text that name a time, with their preposition, and the span that they name, to
// excluded. Words in quotation marks name none. Without a time, words is "".
func Time(text string, now time.Time) (words string, from, to time.Time) {
	open := quoted.Compiled().ReplaceAllStringFunc(text, func(quote string) string { return strings.Repeat(" ", len(quote)) })
	named, from, to := span(open, now)
	named = strings.TrimFunc(named, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	at := strings.Index(open, named)
	if named == "" || at < 0 {
		return "", time.Time{}, time.Time{}
	}
	before := beforeTime.FindString(open[:at])
	return text[at-len(before) : at+len(named)], from, to
}

// beforeTime finds a preposition before a time.
var beforeTime = expression.New(`(?i)\b(?:in|on|of|from|during|since|at) (?:the )?$`)

// NamesSession reports whether the question names a session.
func (w *Whereabouts) NamesSession() bool { return len(w.session) > 0 }

// NamesTime reports whether the question names a time.
func (w *Whereabouts) NamesTime() bool { return !w.From.IsZero() }

// Names returns how well a title matches the named session: the share of the named words in the title.
func (w *Whereabouts) Names(title string) float64 {
	if len(w.session) == 0 {
		return 0
	}
	held := map[string]bool{}
	eachTerm(title, func(term string) { held[term] = true })
	count := 0
	for _, term := range w.session {
		if held[term] {
			count++
		}
	}
	return float64(count) / float64(len(w.session))
}

// Holds reports whether the question names a time that includes at.
func (w *Whereabouts) Holds(at time.Time) bool {
	return w.NamesTime() && !at.Before(w.From) && at.Before(w.To)
}

// Gain returns the rank factor for a document from a time in a session with a title.
func (w *Whereabouts) Gain(title string, at time.Time) float64 {
	gain := 1 + sessionGain*w.Names(title)
	if w.Holds(at) {
		gain *= 1 + timeGain
	}
	return gain
}

const monthNames = `(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?`

var (
	dayWritten  = expression.New(`\b(\d{4})-(\d{2})-(\d{2})\b`)
	dayOfMonth  = expression.New(`\b` + monthNames + ` (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?\b`)
	monthsDay   = expression.New(`\b(\d{1,2})(?:st|nd|rd|th)? (?:of )?` + monthNames + `(?:,? (\d{4}))?\b`)
	wholeMonth  = expression.New(`\b(?:in|during|last|since) ` + monthNames + `(?:,? (\d{4}))?(?:[^ \w]|\s|$)`)
	ago         = expression.New(`(?i)\b(\d{1,3}|an?|one|two|three|four|five|six|seven) (hour|day|week|month)s? ago\b`)
	pastNamed   = expression.New(`(?i)\b(?:(today|this morning|this afternoon)|(yesterday|last night)|(?:(this|last|past) (week|month)))\b`)
	weekdayName = expression.New(`\b(?:on|last|this|from) (Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b`)
)

// span returns the time span in a text, to excluded, and the words that name it; zero values without one.
func span(text string, now time.Time) (words string, from, to time.Time) {
	year, month, day := now.Date()
	on := func(words string, year int, month time.Month, day int) (string, time.Time, time.Time) {
		from := time.Date(year, month, day, 0, 0, 0, 0, now.Location())
		return words, from, from.AddDate(0, 0, 1)
	}
	if match := dayWritten.FindStringSubmatch(text); match != nil {
		return on(match[0], number(match[1]), time.Month(number(match[2])), number(match[3]))
	}
	if match := dayOfMonth.FindStringSubmatch(text); match != nil {
		return on(match[0], yearOf(match[3], monthOf(match[1]), now), monthOf(match[1]), number(match[2]))
	}
	if match := monthsDay.FindStringSubmatch(text); match != nil {
		return on(match[0], yearOf(match[3], monthOf(match[2]), now), monthOf(match[2]), number(match[1]))
	}
	if match := wholeMonth.FindStringSubmatch(text); match != nil {
		_, from, _ = on("", yearOf(match[2], monthOf(match[1]), now), monthOf(match[1]), 1)
		return match[0], from, from.AddDate(0, 1, 0)
	}
	if match := weekdayName.FindStringSubmatch(text); match != nil {
		back := (int(now.Weekday()) - weekdayOf(match[1]) + 7) % 7
		if back == 0 {
			back = 7
		}
		return on(match[0], year, month, day-back)
	}
	if match := ago.FindStringSubmatch(text); match != nil {
		from, to = before(now, amount(match[1]), strings.ToLower(match[2]))
		return match[0], from, to
	}
	match := pastNamed.FindStringSubmatch(text)
	switch {
	case match == nil:
		return "", time.Time{}, time.Time{}
	case match[1] != "":
		return on(match[0], year, month, day)
	case match[2] != "":
		return on(match[0], year, month, day-1)
	}
	from, to = unitOf(now, strings.EqualFold(match[3], "this"), strings.ToLower(match[4]))
	return match[0], from, to
}

// unitOf returns the current week or month, or the previous one.
func unitOf(now time.Time, isThis bool, unit string) (from, to time.Time) {
	year, month, day := now.Date()
	weeks, months := 0, 1
	from = time.Date(year, month, 1, 0, 0, 0, 0, now.Location())
	if unit == "week" {
		weeks, months = 7, 0
		from = time.Date(year, month, day-(int(now.Weekday())+6)%7, 0, 0, 0, 0, now.Location())
	}
	if !isThis {
		from = from.AddDate(0, -months, -weeks)
	}
	return from, from.AddDate(0, months, weeks)
}

// before returns the time around count units ago: half a unit on both sides for weeks and months, the whole
// day for days, an hour on both sides for hours.
func before(now time.Time, count int, unit string) (from, to time.Time) {
	switch unit {
	case "hour":
		at := now.Add(-time.Duration(count) * time.Hour)
		return at.Add(-time.Hour), at.Add(time.Hour)
	case "day":
		year, month, day := now.Date()
		from = time.Date(year, month, day-count, 0, 0, 0, 0, now.Location())
		return from, from.AddDate(0, 0, 1)
	case "week":
		at := now.AddDate(0, 0, -7*count)
		return at.AddDate(0, 0, -4), at.AddDate(0, 0, 4)
	}
	at := now.AddDate(0, -count, 0)
	return at.AddDate(0, 0, -15), at.AddDate(0, 0, 15)
}

// yearOf returns the written year, or the year of the most recent such month.
func yearOf(written string, month time.Month, now time.Time) int {
	switch {
	case written != "":
		return number(written)
	case month > now.Month():
		return now.Year() - 1
	}
	return now.Year()
}

func monthOf(name string) time.Month {
	return time.Month(strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", name)/3 + 1)
}

func weekdayOf(name string) int {
	return slices.Index([]string{"Sun", "Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur"}, name)
}

func amount(word string) int {
	if place := slices.Index([]string{"", "one", "two", "three", "four", "five", "six", "seven"}, strings.ToLower(word)); place > 0 {
		return place
	}
	return max(number(word), 1) // "a", "an"
}

// number returns 0 for a text without digits.
func number(digits string) int {
	value, _ := strconv.Atoi(digits)
	return value
}
