package components

import (
	"net/url"
	"slices"
)

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
