package search

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
)

// In a conversation the messages around one often say what it is about: of what a message
// ranks, those next to it get one share, and those behind them another. The shares come from
// make bench-memory. Calls lend and get nothing: what stands next to a call is rarely about
// the same file.
const (
	nextShare   = 0.2
	secondShare = 0.1
)

// MostLending is how many of the best documents lend to their neighbors among them; others
// stay behind these.
const MostLending = 200

// Ranked is a document that answers a question, and where it stands.
type Ranked struct {
	Lane     uuid.UUID
	From, To int // messages of the lane, To excluded
	Rank     float64
}

// Lend orders documents in place, which come best first, by their ranks and what their
// neighbors lend them: documents of one message each, in one lane.
func Lend[T any](documents []T, of func(*T) Ranked) {
	documents = documents[:min(MostLending, len(documents))]
	type place struct {
		lane    uuid.UUID
		message int
	}
	best := map[place]float64{}
	ranked := make([]Ranked, len(documents))
	for i := range documents {
		one := of(&documents[i])
		ranked[i] = one
		if one.isAlone() {
			at := place{one.Lane, one.From}
			best[at] = max(best[at], one.Rank)
		}
	}
	order := make([]int, len(documents))
	for i := range ranked {
		one := &ranked[i]
		order[i] = i
		if one.isAlone() {
			one.Rank += nextShare*(best[place{one.Lane, one.From - 1}]+best[place{one.Lane, one.From + 1}]) +
				secondShare*(best[place{one.Lane, one.From - 2}]+best[place{one.Lane, one.From + 2}])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranked[b].Rank, ranked[a].Rank) })
	before := slices.Clone(documents)
	for at, i := range order {
		documents[at] = before[i]
	}
}

// isAlone reports whether the document is one message: a call without a result is one too.
func (r *Ranked) isAlone() bool { return r.To == r.From+1 }
