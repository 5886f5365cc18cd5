package tokens

import "math"

const (
	// shortPiece is the longest piece, in bytes, whose pairs are searched linearly. Above it a heap is
	// faster.
	shortPiece = 96

	// longPiece is the longest piece, in bytes, to count exactly. Words and runs of one character can have
	// any length. The beginning of a longer one is counted and extrapolated, so that a text of one long run
	// costs no more than any other.
	longPiece = 8 << 10
)

// merged returns the number of tokens in a piece that isn't a token itself.
func (v *vocabulary) merged(piece string) int {
	switch {
	case len(piece) <= shortPiece:
		return v.mergeShort(piece)
	case len(piece) <= longPiece:
		return v.mergeLong(piece)
	default:
		counted := v.mergeLong(piece[:longPiece])
		return int(float64(counted) / longPiece * float64(len(piece)))
	}
}

// mergeShort repeatedly merges the pair with the lowest rank, the leftmost of several, until no pair is a
// token.
func (v *vocabulary) mergeShort(piece string) int {
	var starts [shortPiece + 1]int // of the parts; the last is the end
	var ranks [shortPiece]uint32   // ranks[i] of parts i and i+1 as one token
	parts := len(piece)
	for i := range parts {
		starts[i] = i
		ranks[i] = unranked
		if i+1 < parts {
			ranks[i] = v.rankOf(piece[i : i+2])
		}
	}
	starts[parts] = len(piece)
	for parts > 1 {
		lowest := 0
		for i := 1; i < parts-1; i++ {
			if ranks[i] < ranks[lowest] {
				lowest = i
			}
		}
		if ranks[lowest] == unranked {
			break
		}
		parts--
		copy(starts[lowest+1:parts+1], starts[lowest+2:])
		copy(ranks[lowest+1:parts], ranks[lowest+2:])
		ranks[lowest] = v.pairRank(piece, starts[:parts+1], lowest)
		if lowest > 0 {
			ranks[lowest-1] = v.pairRank(piece, starts[:parts+1], lowest-1) //nolint:gosec // lowest is above 0
		}
	}
	return parts
}

// pairRank returns the rank of parts i and i+1 as one token.
func (v *vocabulary) pairRank(piece string, starts []int, i int) uint32 {
	if i+2 >= len(starts) {
		return unranked
	}
	return v.rankOf(piece[starts[i]:starts[i+2]])
}

// part is a part of a long piece, identified by its first byte.
type part struct {
	previous, next int32
	rank           uint32 // of the part and its next as one token
}

// mergeLong is mergeShort for long pieces. It uses a linked list of parts and a heap of pairs, so that its
// time is n log n.
func (v *vocabulary) mergeLong(piece string) int {
	parts := make([]part, len(piece))
	var waiting pairs
	for i := range parts {
		parts[i] = part{previous: int32(i) - 1, next: int32(i) + 1, rank: unranked}
		if i+1 < len(parts) {
			parts[i].rank = v.rankOf(piece[i : i+2])
			waiting.push(parts[i].rank, int32(i))
		}
	}
	count := len(parts)
	for len(waiting) > 0 {
		rank, at := waiting.pop()
		if parts[at].rank != rank {
			continue // one of the two has been merged with another since
		}
		gone := parts[at].next
		parts[gone].rank = unranked
		parts[at].next = parts[gone].next
		if int(parts[at].next) < len(parts) {
			parts[parts[at].next].previous = at
		}
		count--
		parts[at].rank = v.rankAt(piece, parts, at)
		waiting.push(parts[at].rank, at)
		if before := parts[at].previous; before >= 0 {
			parts[before].rank = v.rankAt(piece, parts, before)
			waiting.push(parts[before].rank, before)
		}
	}
	return count
}

// rankAt returns the rank of the part at i and its next as one token.
func (v *vocabulary) rankAt(piece string, parts []part, i int32) uint32 {
	next := parts[i].next
	if int(next) >= len(parts) {
		return unranked
	}
	return v.rankOf(piece[i:parts[next].next])
}

// pairs is a heap of pairs of parts that form tokens. The high bits are the rank and the low bits the pair's
// start, so that the leftmost of equal ranks comes first.
type pairs []uint64

func (p *pairs) push(rank uint32, at int32) {
	if rank == unranked {
		return
	}
	heap := append(*p, uint64(rank)<<32|uint64(at)) //nolint:gosec // not negative
	child := len(heap) - 1
	for child > 0 {
		parent := (child - 1) / 2
		if heap[parent] <= heap[child] {
			break
		}
		heap[parent], heap[child] = heap[child], heap[parent]
		child = parent
	}
	*p = heap
}

func (p *pairs) pop() (rank uint32, at int32) {
	heap := *p
	first := heap[0]
	heap[0] = heap[len(heap)-1]
	heap = heap[:len(heap)-1]
	for parent := 0; ; {
		child := 2*parent + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1] < heap[child] {
			child++
		}
		if heap[parent] <= heap[child] {
			break
		}
		heap[parent], heap[child] = heap[child], heap[parent]
		parent = child
	}
	*p = heap
	return uint32(first >> 32), int32(first & math.MaxInt32)
}
