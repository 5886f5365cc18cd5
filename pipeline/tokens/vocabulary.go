package tokens

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// The vocabulary's file lists its tokens by rank, one a line: the token in
// base64, a space, the rank.
const (
	vocabularyFile = "o200k_base.tiktoken"
	vocabularySize = 199_998
	vocabularyText = 1_400_000 // bytes of all tokens, about
)

// unranked is the rank of what is not a token. It is above all ranks.
const unranked = math.MaxUint32

// vocabulary knows the rank of each token: how early it is merged. A map of
// strings would take three times the memory: here the tokens' bytes lie in one
// slab, in the order of their ranks, under a hash table of ranks.
type vocabulary struct {
	seed  maphash.Seed
	slab  []byte
	ends  []uint32 // ends[r] is where the token of rank r ends in slab
	slots []uint32 // by hash: a tag of it above rankBits, rank+1 below; 0: empty
	pairs []uint32 // ranks of the tokens of two bytes, by the bytes: the first lookup of each byte that is merged
}

const (
	slotBits = 19 // of the hash: 2.6 slots for each token
	rankBits = 18
	rankMask = 1<<rankBits - 1
)

// newVocabulary reads the embedded vocabulary.
func newVocabulary() (*vocabulary, error) {
	file, err := assets.Assets.Open(vocabularyFile)
	if err != nil {
		return nil, fmt.Errorf("open vocabulary: %w", err)
	}
	defer file.Close() //nolint:errcheck // it is in memory
	v := &vocabulary{
		seed:  maphash.MakeSeed(),
		slab:  make([]byte, 0, vocabularyText),
		ends:  make([]uint32, 0, vocabularySize),
		slots: make([]uint32, 1<<slotBits),
		pairs: slices.Repeat([]uint32{unranked}, 1<<16),
	}
	if err := v.read(file); err != nil {
		return nil, fmt.Errorf("read vocabulary: %w", err)
	}
	return v, nil
}

func (v *vocabulary) read(file io.Reader) error {
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		encoded, rank, found := bytes.Cut(lines.Bytes(), []byte{' '})
		if !found {
			continue
		}
		if r, err := strconv.Atoi(string(rank)); err != nil || r != len(v.ends) {
			return fmt.Errorf("rank %q after %d tokens", rank, len(v.ends))
		}
		if err := v.add(encoded); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", len(v.ends)+1, err)
	}
	if len(v.ends) != vocabularySize {
		return fmt.Errorf("it has %d tokens, not %d", len(v.ends), vocabularySize)
	}
	return nil
}

// add appends the token with the next rank, given in base64.
func (v *vocabulary) add(encoded []byte) error {
	start := len(v.slab)
	var err error
	v.slab, err = base64.StdEncoding.AppendDecode(v.slab, encoded)
	if err != nil {
		return fmt.Errorf("token %d: %w", len(v.ends), err)
	}
	if len(v.slab) == start {
		return errors.New("an empty token")
	}
	token := string(v.slab[start:])
	if len(token) == 2 {
		v.pairs[load2(token)] = uint32(len(v.ends)) //nolint:gosec // below rankMask
	}
	hash := v.hash(token)
	slot := hash >> (64 - slotBits)
	for v.slots[slot] != 0 {
		slot = (slot + 1) & (1<<slotBits - 1)
	}
	v.slots[slot] = tag(hash) | uint32(len(v.ends)+1) //nolint:gosec // below rankMask
	v.ends = append(v.ends, uint32(len(v.slab)))      //nolint:gosec // some MB at most
	return nil
}

// rank returns the rank of a token, unranked for other bytes. hash must be its
// hash.
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

// hash returns the hash of a piece. Two pieces of less than eight bytes never have
// the same one: theirs is a bijection of their bytes and length.
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

// rankOf returns the rank of a token, unranked for other bytes.
func (v *vocabulary) rankOf(token string) uint32 {
	if len(token) == 2 {
		return v.pairs[load2(token)]
	}
	return v.rank(token, v.hash(token))
}

// tag returns the part of a hash that a slot keeps, in the bits above a rank.
func tag(hash uint64) uint32 { return uint32(hash&math.MaxUint32) &^ rankMask }
