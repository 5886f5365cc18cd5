package tokens

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
