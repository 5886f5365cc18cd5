package session

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

const (
	diffContext  = 3         // lines around a change
	maxDiffBytes = 256 << 10 // of each side; longer ones are compared up to there
	maxDiffLines = 1000
)

// diffLine is a line of a difference: "-" was not sent, "+" was sent in its place,
// "@" says where it stands, "" stands in both.
type diffLine struct{ Sign, Text string }

// diffOf compares originals with what was sent for them, line by line.
func diffOf(originals []original, sent []text) []diffLine {
	was := make([]text, len(originals))
	for i := range originals {
		was[i] = originals[i].Text
	}
	before, after := plain(was), plain(sent)
	edits := udiff.Lines(before, after)
	unified, err := udiff.ToUnifiedDiff("original", "sent", before, edits, diffContext)
	if err != nil {
		return []diffLine{{Sign: "@", Text: "The difference cannot be shown; the other views can."}}
	}
	var lines []diffLine
	for _, hunk := range unified.Hunks {
		lines = append(lines, diffLine{Sign: "@", Text: fmt.Sprintf("from line %d", hunk.FromLine)})
		for _, line := range hunk.Lines {
			if len(lines) >= maxDiffLines {
				return append(lines, diffLine{Sign: "@", Text: "What follows is not shown here. The original bytes hold it."})
			}
			sign := map[udiff.OpKind]string{udiff.Delete: "-", udiff.Insert: "+"}[line.Kind]
			lines = append(lines, diffLine{Sign: sign, Text: strings.TrimSuffix(line.Content, "\n")})
		}
	}
	return lines
}

// plain returns texts as they are compared, ending in a line feed.
func plain(texts []text) string {
	var out strings.Builder
	for _, text := range texts {
		for _, block := range text.Blocks {
			for _, segment := range block.Segments {
				out.WriteString(segment.Text)
			}
			out.WriteByte('\n')
		}
	}
	whole := out.String()
	if len(whole) > maxDiffBytes {
		whole = strings.ToValidUTF8(whole[:maxDiffBytes], "") + "\n"
	}
	return whole
}
