package session

import (
	"strings"
	"unicode/utf8"

	"palimpsest/web/render"
)

// mark marks, block by block, which parts of the original were sent.
func mark(original, sent *text) {
	if len(original.Blocks) != len(sent.Blocks) {
		return
	}
	for i := range original.Blocks {
		was, is := &original.Blocks[i], &sent.Blocks[i]
		if len(was.Segments) != 1 || len(is.Segments) != 1 || was.Segments[0].Text == is.Segments[0].Text {
			continue
		}
		before, after := was.Segments[0].Text, is.Segments[0].Text
		was.Segments, is.Segments = compared(before, after)
	}
}

// leastKept is the minimum length, in bytes, of text shared after the first difference to count as sent.
const leastKept = 8

// compared splits two texts into shared and other parts: their common beginning, and further lines of the
// original, such as its verdict, that the other text contains.
func compared(original, sent string) (was, is []segment) {
	at := commonPrefix(original, sent)
	was, is = []segment{{"kept", original[:at]}}, []segment{{"kept", sent[:at]}}
	for line := range strings.Lines(sent[at:]) {
		core, _, _ := strings.Cut(line, "…")
		core, _, _ = strings.Cut(core, " [")
		core = strings.TrimRight(core, "\n")
		gap := strings.Index(original[at:], core)
		if len(core) < leastKept || gap < 0 {
			is = append(is, segment{"stub", line})
			continue
		}
		was = append(was, segment{"gone", original[at : at+gap]}, segment{"kept", core})
		is = append(is, segment{"kept", core}, segment{"stub", line[len(core):]})
		at += gap + len(core)
	}
	return nonEmpty(append(was, segment{"gone", original[at:]})...), nonEmpty(is...)
}

// commonPrefix returns the length of two texts' common beginning, in bytes, of whole characters only.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) {
		x, size := utf8.DecodeRuneInString(a[n:])
		y, _ := utf8.DecodeRuneInString(b[n:])
		if x != y {
			break
		}
		n += size
	}
	return min(n, len(b))
}

func nonEmpty(segments ...segment) []segment {
	var kept []segment
	for _, segment := range segments {
		if segment.Text != "" {
			kept = append(kept, segment)
		}
	}
	return kept
}

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
