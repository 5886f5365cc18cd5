package components

import (
	"net/url"
	"slices"
)

// Sorting is the order of a list, as its address asks for it.
type Sorting struct {
	By string // "" for the list's own order
	Up bool   // the least first
}

// SortingOf reads sort and dir of an address; keys are the orders that there are.
func SortingOf(address url.Values, keys ...string) Sorting {
	s := Sorting{By: address.Get("sort"), Up: address.Get("dir") == "asc"}
	if !slices.Contains(keys, s.By) {
		return Sorting{}
	}
	return s
}

// Dir returns the direction as an address names it; "" for the usual one.
func (s Sorting) Dir() string {
	if s.Up {
		return "asc"
	}
	return ""
}

// Next returns the order that a click on a column's head leads to: first the usual one, then the other way round.
func (s Sorting) Next(by string) Sorting {
	if s.By == by {
		return Sorting{By: by, Up: !s.Up}
	}
	return Sorting{By: by}
}

// First is what the first page of the list is called.
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

// Further is what the page after the one that is shown is called.
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

// state is how assistive technology calls the order of a column.
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
