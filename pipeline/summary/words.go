package summary

import (
	"strings"
	"unicode"
)

// words returns the words of a text in lower case, without the marks around them.
func words(text string) []string {
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '_' && r != '/' && r != '-' && r != '.'
	})
	kept := all[:0]
	for _, word := range all {
		if word = strings.Trim(word, ".-/"); word != "" {
			kept = append(kept, word)
		}
	}
	return kept
}

// sentences splits a text into its lines and sentences.
func sentences(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		start := 0
		for i, r := range line {
			if !strings.ContainsRune(".!?。！？", r) {
				continue
			}
			end := i + len(string(r))
			if end < len(line) && line[end] != ' ' && line[end] != '\n' && r < 0x80 {
				continue // inside a name or a number
			}
			all = appendText(all, line[start:end])
			start = end
		}
		all = appendText(all, line[start:])
	}
	return all
}

func appendText(texts []string, text string) []string {
	if text = strings.TrimSpace(text); text != "" {
		texts = append(texts, text)
	}
	return texts
}

// wordSet is the words of a text.
type wordSet map[string]bool

func setOf(text string) wordSet {
	set := wordSet{}
	for _, word := range words(text) {
		set[word] = true
	}
	return set
}

// shares returns the share of the smaller set's words that both sets have: 1 if all of them.
func (s wordSet) shares(other wordSet) float64 {
	if len(s) > len(other) {
		s, other = other, s
	}
	if len(s) == 0 {
		return 0
	}
	common := 0
	for word := range s {
		if other[word] {
			common++
		}
	}
	return float64(common) / float64(len(s))
}
