package miner

import (
	"slices"

	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/session"
)

// Use is a pattern that was put into a lane, and whether it helped.
type Use struct {
	Pattern patterns.Pattern
	Helped  bool
}

// helped reports whether a pattern that was put into a lane at a message did any good
// there: nobody said the contrary behind it, and no error that it names stayed.
func helped(h *history, p *patterns.Pattern, message int) bool {
	if contradicted(h, p.Text, message) {
		return false
	}
	for i := range h.ledger.Errors {
		e := &h.ledger.Errors[i]
		// The result that reports an error stands behind the message that calls.
		if e.Message+1 >= message && e.Solved == ledger.Never && slices.Contains(p.When.Signatures, patterns.Signature(e.Excerpt)) {
			return false
		}
	}
	return true
}

// placed returns the patterns that inserts of a lane hold, each with the message that
// it was put at first.
func placed(inserts []session.Insert) map[string]int {
	places := map[string]int{}
	for _, insert := range inserts {
		if insert.Module != patterns.Name {
			continue
		}
		for _, item := range insert.Items {
			if _, known := places[item]; !known {
				places[item] = insert.Message
			}
		}
	}
	return places
}
