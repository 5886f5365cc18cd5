package components

import (
	"net/url"
	"strings"
	"time"
)

const (
	// localForm is how a browser writes a moment of the reader's own time zone.
	localForm = "2006-01-02T15:04"

	longestRange = 5 * 366 * 24 * time.Hour
)

// Range is a range of time of one's own, as a form asks for it.
type Range struct{ From, To FieldModel }

// NewRange returns the range that an address asks for, as it was typed.
func NewRange(address url.Values) Range {
	return Range{
		From: FieldModel{Label: "From", Name: "from", Value: address.Get("from")},
		To:   FieldModel{Label: "To", Name: "to", Value: address.Get("to")},
	}
}

// IsAsked reports whether someone asks for a range of their own.
func (r *Range) IsAsked() bool { return r.From.Value+r.To.Value != "" }

// IsWrong reports whether a field has an error.
func (r *Range) IsWrong() bool { return r.From.Error+r.To.Error != "" }

// Read returns the moments of the fields, those without a zone in the reader's. A day
// without a time, which only an address has, counts from its start and to its end. Where
// they are no range, it says so at the fields, and ok is false.
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

// Show has the fields show a range in the reader's zone.
func (r *Range) Show(from, to time.Time, zone *time.Location) {
	r.From.Value, r.To.Value = from.In(zone).Format(localForm), to.In(zone).Format(localForm)
}

// RangeWords names a range in the reader's zone.
func RangeWords(from, to time.Time, zone *time.Location) string {
	return from.In(zone).Format("2 Jan 15:04") + " to " + to.In(zone).Format("2 Jan 15:04")
}

// moment reads a moment with its zone, or of the reader's zone, or the start of a day
// that comes so many days after the one that is named.
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

// RangeForm asks for a range of one's own.
type RangeForm struct {
	Range

	Path  string   // where it leads
	Kept  []Hidden // what the address asks for besides
	Words string   // the range, if the page shows it; empty: it shows another one
	Hint  string   // below the fields
	Step  string   // between the moments that a browser offers, in seconds
}
