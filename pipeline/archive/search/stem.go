package search

import (
	"strings"
	"unicode/utf8"
)

// shortest is the fewest letters that a stem keeps.
const shortest = 3

// stem takes the commonest endings off an English word in lower case, so that
// "tests", "tested" and "testing" are found by "test". Other words stay as they are.
// It is lighter than Porter's stemmer: names in code must not run into one another.
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

// bare takes an ending off if what stays has a vowel and is long enough, and makes a
// doubled last letter one ("running").
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

// cyrillicEndings are endings of nouns and adjectives in Russian that end in a consonant or
// hold one.
var cyrillicEndings = []string{"ами", "ями", "ого", "его", "ому", "ему", "ыми", "ими", "ах", "ях", "ам", "ям", "ом", "ем", "ов", "ев", "ых", "их"}

// cyrillicStem takes the endings of case and number off a word in Cyrillic letters. Other
// words stay as they are.
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

// isPlain reports whether a word is letters from a to z alone.
func isPlain(word string) bool {
	for i := range len(word) {
		if !isLower(word[i]) {
			return false
		}
	}
	return true
}
