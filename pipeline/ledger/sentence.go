package ledger

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxText bounds how much of one text is read for sentences, because longer text is pasted.
const maxText = 64 << 10

// sentences yields the sentences of a text, each as written. A sentence ends with its line at the
// latest, and the sign of a list or heading before it is left out.
func sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text[:min(len(text), maxText)]) {
			line = strings.TrimLeft(strings.TrimSpace(line), "-*•#> \t")
			for line != "" {
				end := sentenceEnd(line)
				if sentence := strings.TrimSpace(line[:end]); sentence != "" && !yield(sentence) {
					return
				}
				line = strings.TrimSpace(line[end:])
			}
		}
	}
}

// sentenceEnd returns the length of a line's first sentence.
func sentenceEnd(line string) int {
	for i, r := range line {
		next := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？':
			return next
		case '.', '!', '?':
			if next == len(line) {
				return next
			}
			if line[next] == ' ' && i > 2 && !abbreviates(line[:i]) {
				return next
			}
		}
	}
	return len(line)
}

// abbreviates reports whether the dot after a text ends no sentence.
func abbreviates(text string) bool {
	word := text[strings.LastIndexAny(text, " (")+1:]
	return strings.HasPrefix(word, "./") || slices.Contains([]string{"e.g", "i.e", "vs", "etc", "no", "cf", "resp"}, strings.ToLower(word)) || len(word) == 1
}

// oneLine returns text in one line of at most so many bytes, as a separate string.
func oneLine(text string, size int) string {
	if len(text) > 4*size {
		text = text[:runeStart(text, 4*size)]
	}
	return bounded(strings.Join(strings.Fields(text), " "), size)
}

// bounded returns a text of at most so many bytes, as a separate string.
func bounded(text string, size int) string {
	if len(text) <= size {
		return strings.Clone(text)
	}
	return strings.TrimSpace(text[:runeStart(text, size-len("…"))]) + "…"
}

// runeStart moves a cut back to the beginning of a rune.
func runeStart(text string, cut int) int {
	for cut > 0 && cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return cut
}
