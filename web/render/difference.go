package render

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

const (
	diffContext  = 3 // lines around a change
	maxDiffLines = 1000
)

// Line is a line of a difference. Sign is "-" if only the old text has it, "+" if only the new text has it,
// "@" for the position of the next lines, and "" if both have it.
type Line struct{ Sign, Text string }

// Difference compares two texts line by line. It cuts the result at 1000 lines and says so.
func Difference(before, after string) []Line {
	edits := udiff.Lines(before, after)
	unified, err := udiff.ToUnifiedDiff("before", "after", before, edits, diffContext)
	if err != nil {
		return []Line{{Sign: "@", Text: "The difference cannot be shown; the other views can."}}
	}
	var lines []Line
	for _, hunk := range unified.Hunks {
		lines = append(lines, Line{Sign: "@", Text: fmt.Sprintf("from line %d", hunk.FromLine)})
		for _, line := range hunk.Lines {
			if len(lines) >= maxDiffLines {
				return append(lines, Line{Sign: "@", Text: "The rest is not shown here. See the other views."})
			}
			sign := map[udiff.OpKind]string{udiff.Delete: "-", udiff.Insert: "+"}[line.Kind]
			lines = append(lines, Line{Sign: sign, Text: strings.TrimSuffix(line.Content, "\n")})
		}
	}
	return lines
}
