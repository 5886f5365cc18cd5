package ledger

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/excerpts"
)

// Outline returns the short form of a long plan: the first sentence of each of its headings, steps
// and paragraphs, without code.
func Outline(plan string) string {
	var short strings.Builder
	fence, inParagraph := "", false
	for line := range strings.Lines(plan) {
		line = strings.TrimRight(line, " \t\r\n")
		text := strings.TrimLeft(line, " \t")
		switch {
		case fence != "":
			if strings.HasPrefix(text, fence) {
				fence = ""
			}
			continue
		case strings.HasPrefix(text, "```"), strings.HasPrefix(text, "~~~"):
			fence, inParagraph = text[:3], false
			continue
		case text == "":
			inParagraph = false
			continue
		}
		sign := listSign(text)
		if inParagraph && sign == 0 {
			continue // the paragraph or step goes on
		}
		inParagraph = !strings.HasPrefix(text, "#")
		indent := line[:len(line)-len(text)]
		short.WriteString(indent + text[:sign] + strings.TrimSpace(text[sign:sign+sentenceEnd(text[sign:])]) + "\n")
	}
	return strings.TrimSuffix(short.String(), "\n")
}

// listSign returns the length of the mark that begins a step or a heading, such as "- " or "12. ",
// including the spaces after it; 0 if absent.
func listSign(text string) int {
	end := 0
	switch digits := len(text) - len(strings.TrimLeft(text, "0123456789")); {
	case digits > 0 && digits < len(text) && (text[digits] == '.' || text[digits] == ')'):
		end = digits + 1
	case strings.HasPrefix(text, "#"):
		end = len(text) - len(strings.TrimLeft(text, "#"))
	case strings.ContainsRune("-*+", rune(text[0])):
		end = 1
	case strings.HasPrefix(text, "•"):
		end = len("•")
	}
	if end == 0 || end == len(text) || text[end] != ' ' {
		return 0
	}
	return len(text) - len(strings.TrimLeft(text[end:], " "))
}

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
		text = excerpts.Bytes(text, 4*size)
	}
	return bounded(strings.Join(strings.Fields(text), " "), size)
}

// bounded returns a text of at most so many bytes, as a separate string.
func bounded(text string, size int) string {
	if len(text) <= size {
		return strings.Clone(text)
	}
	return strings.TrimSpace(excerpts.Bytes(text, size-len("…"))) + "…"
}
