package components

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// localForm is a browser's format of a moment in the reader's time zone.
	localForm = "2006-01-02T15:04"

	longestRange = 5 * 366 * 24 * time.Hour
)

// Range is the form of a custom range of time.
type Range struct{ From, To FieldModel }

// NewRange returns the range in an address, as typed.
func NewRange(address url.Values) Range {
	return Range{
		From: FieldModel{Label: "From", Name: "from", Value: address.Get("from")},
		To:   FieldModel{Label: "To", Name: "to", Value: address.Get("to")},
	}
}

// IsAsked reports whether the address has a custom range.
func (r *Range) IsAsked() bool { return r.From.Value+r.To.Value != "" }

// IsWrong reports whether a field has an error.
func (r *Range) IsWrong() bool { return r.From.Error+r.To.Error != "" }

// Read returns the fields' moments; those without a zone are in the reader's. A day without a time, which
// only occurs in addresses, counts from its start or to its end. If they are not a valid range, the fields
// get the error and ok is false.
func (r *Range) Read(zone *time.Location) (from, to time.Time, ok bool) {
	from, fromOK := moment(r.From.Value, zone, 0)
	to, toOK := moment(r.To.Value, zone, 1)
	const choose = " must be a day and a time. Choose both, such as 2026-01-31T09:00."
	if !fromOK {
		r.From.Error = r.From.Label + choose
	}
	if !toOK {
		r.To.Error = r.To.Label + choose
	}
	switch {
	case !fromOK || !toOK:
		return from, to, false
	case !from.Before(to):
		r.To.Error = "To must be after From. Choose a later end, or an earlier start."
		return from, to, false
	case to.Sub(from) > longestRange:
		r.To.Error = "To must be at most five years after From. Choose an earlier end, or a later start."
		return from, to, false
	}
	return from, to, true
}

// Show fills the fields with a range in the reader's zone.
func (r *Range) Show(from, to time.Time, zone *time.Location) {
	r.From.Value, r.To.Value = from.In(zone).Format(localForm), to.In(zone).Format(localForm)
}

// RangeWords names a range in the reader's zone.
func RangeWords(from, to time.Time, zone *time.Location) string {
	return from.In(zone).Format("2 Jan 15:04") + " to " + to.In(zone).Format("2 Jan 15:04")
}

// moment reads a moment with its zone or in the reader's zone, or the start of the day that comes so many
// days after the given one.
func moment(text string, zone *time.Location, days int) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return day.AddDate(0, 0, days), true
	}
	at, err := time.ParseInLocation(localForm, strings.TrimSuffix(text, "Z"), zone)
	return at, err == nil
}

// Hidden is a hidden field of a form.
type Hidden struct{ Name, Value string }

// RangeForm is the form for a custom range.
type RangeForm struct {
	Range

	Path  string   // the form's target
	Kept  []Hidden // the address's other parameters
	Words string   // the range, if the page shows it; "" if it shows another one
	Hint  string   // below the fields
	Step  string   // between the moments offered by a browser, in seconds
}

// Sorting is a list's order from its address.
type Sorting struct {
	By string // "" for the list's own order
	Up bool   // ascending
}

// SortingOf reads sort and dir of an address; keys are the allowed columns.
func SortingOf(address url.Values, keys ...string) Sorting {
	s := Sorting{By: address.Get("sort"), Up: address.Get("dir") == "asc"}
	if !slices.Contains(keys, s.By) {
		return Sorting{}
	}
	return s
}

// Dir returns the direction in an address; "" for the default.
func (s Sorting) Dir() string {
	if s.Up {
		return "asc"
	}
	return ""
}

// Next returns the order after a click on a column's head: first the default, then the reverse.
func (s Sorting) Next(by string) Sorting {
	if s.By == by {
		return Sorting{By: by, Up: !s.Up}
	}
	return Sorting{By: by}
}

// First is the name of the list's first page.
func (s Sorting) First() string {
	switch {
	case s.By != "":
		return "First page"
	case s.Up:
		return "Oldest"
	default:
		return "Newest"
	}
}

// Further is the name of the next page.
func (s Sorting) Further() string {
	switch {
	case s.By != "":
		return "Next page"
	case s.Up:
		return "Newer"
	default:
		return "Older"
	}
}

// state is the column's order for assistive technology.
func (s Sorting) state(by string) string {
	switch {
	case s.By != by:
		return "none"
	case s.Up:
		return "ascending"
	default:
		return "descending"
	}
}
