package search

import (
	"strings"
	"unicode/utf8"
)

// shortest is the minimum length of a stem.
const shortest = 3

// stem removes the most common endings of an English word in lower case, so that "test" finds "tests",
// "tested" and "testing". Other words stay unchanged. It is lighter than Porter's stemmer, because different
// names in code must not get the same stem.
func stem(word string) string {
	if len(word) <= shortest || !isPlain(word) {
		return cyrillicStem(word)
	}
	switch {
	case strings.HasSuffix(word, "ies") && len(word) > shortest+2:
		return word[:len(word)-3] + "y"
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "xes"), strings.HasSuffix(word, "ches"), strings.HasSuffix(word, "shes"):
		return word[:len(word)-2]
	case strings.HasSuffix(word, "ss"), strings.HasSuffix(word, "us"), strings.HasSuffix(word, "is"):
		return word
	case strings.HasSuffix(word, "s"):
		return stem(word[:len(word)-1])
	case strings.HasSuffix(word, "ing"):
		return bare(word, 3)
	case strings.HasSuffix(word, "ed") && !strings.HasSuffix(word, "eed"):
		return bare(word, 2)
	case strings.HasSuffix(word, "e") && len(word) > shortest:
		return word[:len(word)-1]
	}
	return word
}

// bare removes an ending if the rest has a vowel and is long enough, and reduces a doubled last letter
// ("running").
func bare(word string, ending int) string {
	base := word[:len(word)-ending]
	if len(base) < shortest || !strings.ContainsAny(base, "aeiouy") {
		return word
	}
	last := len(base) - 1
	if base[last] == base[last-1] && !strings.ContainsRune("lsz", rune(base[last])) && last >= shortest {
		return base[:last]
	}
	if base[last] == 'e' && last >= shortest {
		return base[:last]
	}
	return base
}

// cyrillicEndings are Russian endings of nouns and adjectives that end in or contain a consonant.
var cyrillicEndings = []string{"ами", "ями", "ого", "его", "ому", "ему", "ыми", "ими", "ах", "ях", "ам", "ям", "ом", "ем", "ов", "ев", "ых", "их"}

// cyrillicStem removes case and number endings from a word in Cyrillic letters. Other words stay unchanged.
func cyrillicStem(word string) string {
	if first, _ := utf8.DecodeRuneInString(word); first < 'а' || first > 'ӿ' {
		return word
	}
	base := word
	for _, ending := range cyrillicEndings {
		if rest, has := strings.CutSuffix(word, ending); has && utf8.RuneCountInString(rest) >= shortest {
			base = rest
			break
		}
	}
	if rest := strings.TrimRight(base, "аеёиоуыэюяьйіїє"); utf8.RuneCountInString(rest) >= shortest {
		return rest
	}
	return base
}

// isPlain reports whether a word consists of letters from a to z.
func isPlain(word string) bool {
	for i := range len(word) {
		if !isLower(word[i]) {
			return false
		}
	}
	return true
}
