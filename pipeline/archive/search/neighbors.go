package search

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
)

// In a conversation the messages around one often show its topic, so adjacent messages lend it one share of
// their rank, and those next to them another. The shares come from make bench-memory. Calls are excluded,
// because the messages next to a call are rarely about the same file.
const (
	nextShare   = 0.2
	secondShare = 0.1
)

// MostLending is how many of the best documents lend to their neighbors. The others stay after them.
const MostLending = 200

// Ranked is a document that answers a question, with its place and rank.
type Ranked struct {
	Lane     uuid.UUID
	From, To int // messages of the lane, To excluded
	Rank     float64
}

// Lend sorts documents, which come best first, in place by their ranks including those lent by neighbors.
// Only documents of a single message lend, within their lane.
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

// isAlone reports whether the document is one message. This includes a call without a result.
func (r *Ranked) isAlone() bool { return r.To == r.From+1 }
