package components

import "encoding/json"

// The kinds of a chart's axis.
const (
	OverTime = "time"  // X are seconds since 1970
	InOrder  = "index" // X are numbers of things in order
)

// The units of a chart's values.
const (
	InTokens = ""       // shortened: 4.1M
	InMicros = "micros" // microseconds, shown in milliseconds
	InShares = "share"  // hundredths of a per cent, shown in per cent
)

// Chart is what js/chart.js draws.
type Chart struct {
	Kind   string  `json:"kind"`
	XLabel string  `json:"xLabel,omitempty"` // what X counts, where it is InOrder
	X      []int64 `json:"x"`
	Series []Line  `json:"series"`
	Marks  []Mark  `json:"marks,omitempty"`

	Unit   string `json:"unit,omitempty"`
	Zone   string `json:"zone,omitempty"`   // that times are written in; empty: the browser's
	Height int    `json:"height,omitempty"` // in pixels; 0: 250
	Bars   bool   `json:"bars,omitempty"`   // series stand upon one another
	Gap    string `json:"gap,omitempty"`    // what is between the first two lines; empty if nothing
	Sync   string `json:"sync,omitempty"`   // charts of one name share their cursor
	Step   int64  `json:"step,omitempty"`   // seconds from one X to the next, where it is OverTime

	// Zoom is the page to which the ends of a dragged range, from and to, are added;
	// empty: dragging enlarges the chart.
	Zoom string `json:"zoom,omitempty"`

	// Open is the list to which a click on a step leads, with the ends of the step, since
	// and until, as a filter; empty: a click does nothing.
	Open string `json:"open,omitempty"`
}

// Line is one line of a chart.
type Line struct {
	Label  string   `json:"label"`
	Color  string   `json:"color"`          // a custom property of the style sheet: "lapis-fill"
	Key    string   `json:"key"`            // class of its mark in the legend: "lapis"
	Fill   float64  `json:"fill,omitempty"` // opacity of the area below; 0 if none
	Dash   bool     `json:"dash,omitempty"`
	Stack  bool     `json:"stack,omitempty"` // drawn on top of the stacked lines that follow it
	Values []*int64 `json:"values"`          // nil: a gap
}

// Mark is a place of the X axis where something happened.
type Mark struct {
	X    int64  `json:"x"`
	Text string `json:"text"` // one or two characters
}

// JSON returns the chart as the data-chart attribute holds it.
func (c Chart) JSON() string {
	out, err := json.Marshal(c)
	if err != nil {
		return "{}" // numbers and strings always have a form
	}
	return string(out)
}
