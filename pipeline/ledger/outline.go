package ledger

import "strings"

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
