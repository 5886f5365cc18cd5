package components

import (
	"encoding/json"
	"fmt"
	"strings"
)

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

// Chart is the input of js/chart.js.
type Chart struct {
	Kind   string  `json:"kind"`
	XLabel string  `json:"xLabel,omitempty"` // the unit of X if InOrder
	X      []int64 `json:"x"`
	Series []Line  `json:"series"`
	Marks  []Mark  `json:"marks,omitempty"`

	Unit   string `json:"unit,omitempty"`
	Zone   string `json:"zone,omitempty"`   // of the times; "" means the browser's
	Height int    `json:"height,omitempty"` // in pixels; 0 means 250
	Bars   bool   `json:"bars,omitempty"`   // series are stacked
	Gap    string `json:"gap,omitempty"`    // name of the area between the first two lines; "" if absent
	Sync   string `json:"sync,omitempty"`   // charts with the same name share their cursor
	Step   int64  `json:"step,omitempty"`   // seconds from one X to the next if OverTime

	// Zoom is the page that opens after dragging over a range, with its ends, from and to, added. "" enlarges
	// the chart instead.
	Zoom string `json:"zoom,omitempty"`

	// Open is the list that a click on a step opens, filtered by the step's ends, since and until; ""
	// disables clicks.
	Open string `json:"open,omitempty"`
}

// Line is a series of a chart.
type Line struct {
	Label  string   `json:"label"`
	Color  string   `json:"color"`          // a custom property of the style sheet: "lapis-fill"
	Key    string   `json:"key"`            // class of its mark in the legend: "lapis"
	Fill   float64  `json:"fill,omitempty"` // opacity of the area below; 0 if not filled
	Dash   bool     `json:"dash,omitempty"`
	Stack  bool     `json:"stack,omitempty"` // stacked on the stacked lines that follow it
	Values []*int64 `json:"values"`          // nil is a gap
}

// Mark marks an event on the X axis.
type Mark struct {
	X    int64  `json:"x"`
	Text string `json:"text"` // one or two characters
}

// JSON returns the chart for the data-chart attribute.
func (c Chart) JSON() string {
	out, err := json.Marshal(c)
	if err != nil {
		return "{}" // numbers and strings always marshal
	}
	return string(out)
}

// Spark is a small chart of the context window's use, request by request.
type Spark struct {
	Line, Area string // paths of SVG, sparkWidth by sparkHeight
	Words      string
}

const (
	sparkWidth, sparkHeight = 100.0, 26.0
	sparkTop                = 2.0 // room above a full window
)

// NewSpark draws at least two shares of the window, oldest first; of names their subject.
func NewSpark(shares []float64, of string) *Spark {
	var line strings.Builder
	highest := 0.0
	for i, share := range shares {
		x := sparkWidth * float64(i) / float64(len(shares)-1)
		y := sparkHeight - min(share, 1)*(sparkHeight-sparkTop)
		fmt.Fprintf(&line, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], x, y)
		highest = max(highest, share)
	}
	return &Spark{
		Line: line.String(), Area: line.String() + fmt.Sprintf("L%.1f %.1fL0 %.1fZ", sparkWidth, sparkHeight, sparkHeight),
		Words: fmt.Sprintf("Context window filled by %s, at most %.0f percent", of, 100*highest),
	}
}
