package tokens

import (
	_ "embed" // o200k_base.zst
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// The vocabulary's file is compressed with zstd. It holds the length of each token as a byte, by rank, and
// then the tokens. tiktoken's own format would take four times the space in the program.
// TestVocabularyIsThatOfTiktoken writes the file.
const (
	vocabularyFile = "o200k_base.zst"
	vocabularySize = 199_998
	vocabularyMax  = 4 << 20 // bytes unpacked
)

//go:embed o200k_base.zst
var packedVocabulary []byte

// unranked is the rank of text that isn't a token. It is above all ranks.
const unranked = math.MaxUint32

// vocabulary maps each token to its rank, the order of merging. A map of strings would take three times the
// memory, so the tokens' bytes are in one slab, by rank, under a hash table of ranks.
type vocabulary struct {
	seed  maphash.Seed
	slab  []byte
	ends  []uint32 // ends[r] is the end of the token of rank r in slab
	slots []uint32 // by hash: a tag of it above rankBits, rank+1 below; 0 if empty
	pairs []uint32 // ranks of the tokens of two bytes, by the bytes: the first lookup for each merged byte
}

const (
	slotBits = 19 // of the hash: 2.6 slots per token
	rankBits = 18
	rankMask = 1<<rankBits - 1
)

// newVocabulary reads the embedded vocabulary.
func newVocabulary() (*vocabulary, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(vocabularyMax), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("open vocabulary: %w", err)
	}
	defer decoder.Close()
	unpacked, err := decoder.DecodeAll(packedVocabulary, nil)
	if err != nil {
		return nil, fmt.Errorf("unpack vocabulary: %w", err)
	}
	if len(unpacked) < vocabularySize {
		return nil, fmt.Errorf("it has less than %d tokens", vocabularySize)
	}
	v := &vocabulary{
		seed:  maphash.MakeSeed(),
		slab:  slices.Clone(unpacked[vocabularySize:]),
		ends:  make([]uint32, 0, vocabularySize),
		slots: make([]uint32, 1<<slotBits),
		pairs: slices.Repeat([]uint32{unranked}, 1<<16),
	}
	end := 0
	for _, length := range unpacked[:vocabularySize] {
		start := end
		if end += int(length); length == 0 || end > len(v.slab) {
			return nil, fmt.Errorf("token %d is empty or cut off", len(v.ends))
		}
		v.add(string(v.slab[start:end]), uint32(end)) //nolint:gosec // vocabularyMax at most
	}
	if end != len(v.slab) {
		return nil, errors.New("it ends after its last token")
	}
	return v, nil
}

// add adds the token with the next rank, which ends at end in the slab.
func (v *vocabulary) add(token string, end uint32) {
	if len(token) == 2 {
		v.pairs[load2(token)] = uint32(len(v.ends)) //nolint:gosec // below rankMask
	}
	hash := v.hash(token)
	slot := hash >> (64 - slotBits)
	for v.slots[slot] != 0 {
		slot = (slot + 1) & (1<<slotBits - 1)
	}
	v.slots[slot] = tag(hash) | uint32(len(v.ends)+1) //nolint:gosec // below rankMask
	v.ends = append(v.ends, end)
}

// rank returns the rank of a token; unranked for other text. hash must be its hash.
func (v *vocabulary) rank(token string, hash uint64) uint32 {
	for slot := hash >> (64 - slotBits); ; slot = (slot + 1) & (1<<slotBits - 1) {
		found := v.slots[slot]
		if found == 0 {
			return unranked
		}
		if found&^rankMask != tag(hash) {
			continue
		}
		rank := found&rankMask - 1
		start := uint32(0)
		if rank > 0 {
			start = v.ends[rank-1]
		}
		if string(v.slab[start:v.ends[rank]]) == token {
			return rank
		}
	}
}

// hash returns the hash of a piece. Pieces of less than eight bytes never collide, because their hash is a
// bijection of bytes and length.
func (v *vocabulary) hash(piece string) uint64 {
	n := len(piece)
	if n >= 8 {
		return maphash.String(v.seed, piece)
	}
	bytes := uint64(n) << 56
	switch {
	case n >= 4:
		bytes |= load4(piece) | load4(piece[n-4:])<<(8*(n-4))
	case n >= 2:
		bytes |= load2(piece) | load2(piece[n-2:])<<(8*(n-2))
	case n == 1:
		bytes |= uint64(piece[0])
	}
	bytes *= 0x9e3779b97f4a7c15
	bytes ^= bytes >> 32
	return bytes * 0xd6e8feb86659fd93
}

func load2(text string) uint64 { return uint64(text[0]) | uint64(text[1])<<8 }

func load4(text string) uint64 {
	return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24
}

// rankOf returns the rank of a token; unranked for other text.
func (v *vocabulary) rankOf(token string) uint32 {
	if len(token) == 2 {
		return v.pairs[load2(token)]
	}
	return v.rank(token, v.hash(token))
}

// tag returns the part of a hash that a slot stores, in the bits above a rank.
func tag(hash uint64) uint32 { return uint32(hash&math.MaxUint32) &^ rankMask }
