package miner

import (
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/modules/patterns"
)

// Finding is something that one message of a lane teaches.
type Finding struct {
	Kind    patterns.Kind
	Text    string
	When    patterns.When
	Message int // index in the lane

	// Sessions and Messages are in how many it must be met to become a candidate.
	Sessions, Messages int
}

// find returns what a lane teaches, in the order of its messages, each once.
func find(h *history) []Finding {
	found := append(directives(h), commands(h)...)
	kept := found[:0]
	for _, finding := range found {
		known := slices.ContainsFunc(kept, func(other Finding) bool {
			return other.Kind == finding.Kind && other.Message == finding.Message && patterns.IsAlike(other.Text, finding.Text)
		})
		if !known && fits(&finding) {
			kept = append(kept, finding)
		}
	}
	slices.SortStableFunc(kept, func(a, b Finding) int { return a.Message - b.Message })
	return kept
}

// fits reports whether a finding can be kept: it is short, has something to be found
// by, and holds nothing secret.
func fits(finding *Finding) bool {
	if utf8.RuneCountInString(finding.Text) > patterns.MaxText || strings.Contains(finding.Text, "…") || len(patterns.Words(finding.Text)) < 2 {
		return false
	}
	when := &finding.When
	if len(when.Terms)+len(when.Paths) == 0 {
		return false
	}
	return !slices.ContainsFunc(append([]string{finding.Text}, when.Paths...), patterns.HoldsSecret)
}

// pathsIn returns the files that a text names.
func pathsIn(text string) []string {
	var paths []string
	for field := range strings.FieldsSeq(text) {
		field = strings.Trim(field, "`'\"()[]{}<>,;:!?.*")
		dot := strings.LastIndexByte(field, '.')
		isFile := dot > 0 && len(field)-dot <= 6 && len(field)-dot > 1 && strings.Trim(field[dot+1:], "abcdefghijklmnopqrstuvwxyz0123456789") == "" &&
			strings.Trim(field[dot+1:], "0123456789") != "" && !strings.ContainsAny(field, "()=$")
		if isFile && !strings.Contains(field, "://") && len(field) <= patterns.MaxOfTerm && !slices.Contains(paths, field) && len(paths) < patterns.MaxTerms {
			paths = append(paths, field)
		}
	}
	return paths
}
