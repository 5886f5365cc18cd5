package search

import "strings"

// shortest is the fewest letters that a stem keeps.
const shortest = 3

// stem takes the commonest endings off an English word in lower case, so that
// "tests", "tested" and "testing" are found by "test". Other words stay as they are.
// It is lighter than Porter's stemmer: names in code must not run into one another.
func stem(word string) string {
	if len(word) <= shortest || !isPlain(word) {
		return word
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

// isPlain reports whether a word is letters from a to z alone.
func isPlain(word string) bool {
	for i := range len(word) {
		if !isLower(word[i]) {
			return false
		}
	}
	return true
}
