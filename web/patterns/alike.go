package patterns

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"palimpsest/pipeline/modules/patterns"
)

// alikeShare is how much of the words of two rules is the same where they are shown together.
const alikeShare = 0.6

// group is rules that say almost the same, or one rule.
type group struct{ Rules []patterns.Pattern }

// grouped returns rules with the best evidence first, each with those that say almost the
// same behind it.
func grouped(rules []patterns.Pattern) []group {
	sorted := slices.Clone(rules)
	slices.SortStableFunc(sorted, func(a, b patterns.Pattern) int {
		return cmp.Or(cmp.Compare(b.Sessions, a.Sessions), b.LastSeen.Compare(a.LastSeen))
	})
	var groups []group
	var firsts []map[string]bool
	for i := range sorted {
		said := plainWords(sorted[i].Text)
		at := slices.IndexFunc(firsts, func(first map[string]bool) bool { return alike(first, said) })
		if at < 0 || groups[at].Rules[0].Kind != sorted[i].Kind {
			groups, firsts = append(groups, group{Rules: []patterns.Pattern{sorted[i]}}), append(firsts, said)
			continue
		}
		groups[at].Rules = append(groups[at].Rules, sorted[i])
	}
	return groups
}

// plainWords returns the words of a text without names of code, paths and numbers, in which
// rules that are almost the same differ.
func plainWords(text string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, ".,;:!?\"'`()")
		isName := strings.ContainsFunc(word, func(sign rune) bool { return unicode.IsDigit(sign) || strings.ContainsRune("./_\\", sign) }) ||
			strings.IndexFunc(word, unicode.IsUpper) > 0
		if word != "" && !isName {
			words[strings.ToLower(word)] = true
		}
	}
	return words
}

// alike reports whether two sets of words are almost the same. Rules that are held back have
// no words and are like no other.
func alike(a, b map[string]bool) bool {
	shared := 0
	for word := range a {
		if b[word] {
			shared++
		}
	}
	all := len(a) + len(b) - shared
	return shared > 0 && float64(shared) >= alikeShare*float64(all)
}
