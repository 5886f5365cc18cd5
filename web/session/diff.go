package session

import (
	"strings"

	"palimpsest/web/render"
)

// maxDiffBytes limits the compared part of each side.
const maxDiffBytes = 256 << 10

// diffLine is a line of a difference: "-" was not sent, "+" was sent in its place.
type diffLine = render.Line

// diffOf compares originals with the text sent for them, line by line.
func diffOf(originals []original, sent []text) []diffLine {
	was := make([]text, len(originals))
	for i := range originals {
		was[i] = originals[i].Text
	}
	return render.Difference(plain(was), plain(sent))
}

// plain returns texts for the comparison, with a final line feed.
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
