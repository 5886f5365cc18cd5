package components

import (
	"fmt"
	"strings"
)

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
