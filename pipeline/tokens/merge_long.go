package tokens

import "math"

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
