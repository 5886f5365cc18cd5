package patterns

import (
	"cmp"
	"slices"
	"strings"

	"palimpsest/pipeline/excerpts"
)

// The limits of the text that is searched.
const (
	typedBytes = 16 << 10 // of typed text; more is pasted
	resultHead = 4 << 10  // of the beginning of a tool result
	resultTail = 8 << 10  // and of its end
)

// The weights of a pattern's terms in typed text, and the number that is needed.
const (
	rare     = 2 // a term in few requests
	common   = 1
	fewTerms = 2 // with at most so many terms, one rare one is enough
)

// index holds the patterns of one workspace, ready for search. It never changes.
type index struct {
	patterns   []Pattern      // those edited last first
	signatures map[string]int // of errors, to the index of the pattern
}

// newIndex returns the index of approved patterns; nil if there are no patterns. It leaves out
// unknown kinds that another version stored.
func newIndex(approved []Pattern) *index {
	known := slices.DeleteFunc(slices.Clone(approved), func(p Pattern) bool { return !slices.Contains(Kinds(), p.Kind) })
	if len(known) == 0 {
		return nil
	}
	x := &index{patterns: known, signatures: map[string]int{}}
	slices.SortStableFunc(x.patterns, func(a, b Pattern) int {
		return cmp.Or(b.EditedAt.Compare(a.EditedAt), strings.Compare(a.ID.String(), b.ID.String()))
	})
	for i := range x.patterns {
		p := &x.patterns[i]
		for _, signature := range p.When.Signatures {
			if _, taken := x.signatures[signature]; !taken {
				x.signatures[signature] = i
			}
		}
	}
	return x
}

// relevant returns the patterns that are relevant to typed text, the most relevant first.
func (x *index) relevant(typed string) []*Pattern {
	if len(typed) > typedBytes {
		typed = excerpts.Bytes(typed, typedBytes)
	}
	words := map[string]bool{}
	for _, word := range Words(typed) {
		words[word] = true
	}
	type match struct {
		pattern *Pattern
		score   int
	}
	var matches []match
	for i := range x.patterns {
		p := &x.patterns[i]
		if score := relevance(&p.When, words, typed); score > 0 {
			matches = append(matches, match{p, score})
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int { return b.score - a.score })
	found := make([]*Pattern, len(matches))
	for i, match := range matches {
		found[i] = match.pattern
	}
	return found
}

// relevance returns how relevant a pattern is to a text with the given words; 0 means not relevant.
// One word that many requests hold is never enough.
func relevance(when *When, words map[string]bool, typed string) int {
	score, need := 0, rare
	if len(when.Terms) > fewTerms {
		need = rare + common
	}
	for _, term := range when.Terms {
		switch {
		case !words[term]:
		case generic[term]:
			score += common
		default:
			score += rare
		}
	}
	for _, path := range when.Paths {
		if holdsPath(typed, path) {
			score += need
		}
	}
	if score < need {
		score = 0
	}
	if when.Always {
		score++
	}
	return score
}

// holdsPath reports whether a text names a file.
func holdsPath(text, path string) bool {
	for at := 0; path != ""; {
		i := strings.Index(text[at:], path)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(path)
		if (at == 0 || !isNameByte(text[at-1])) && (end == len(text) || !isNameByte(text[end]) || text[end] == '.') {
			return true
		}
		at = end
	}
	return false
}

func isNameByte(sign byte) bool {
	return sign == '_' || sign == '-' || sign == '.' || classOf(sign) != '-'
}

// naming returns the patterns that name an error in a text, in the order in which the errors appear
// in it.
func (x *index) naming(text string) []*Pattern {
	if len(x.signatures) == 0 {
		return nil
	}
	parts := []string{text}
	if len(text) > resultHead+resultTail {
		parts = []string{text[:resultHead], text[len(text)-resultTail:]}
	}
	var found []*Pattern
	for _, part := range parts {
		for line := range strings.Lines(part) {
			signature := Signature(line)
			if signature == "" {
				continue
			}
			i, known := x.signatures[signature]
			if p := &x.patterns[max(i, 0)]; known && !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	return found
}
