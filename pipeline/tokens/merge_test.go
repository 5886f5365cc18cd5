package tokens

import (
	"testing"

	"pgregory.net/rapid"
)

func TestBothWaysOfMergingAgree(t *testing.T) {
	t.Parallel()
	vocabulary, err := newVocabulary()
	if err != nil {
		t.Fatal(err)
	}

	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.StringOfN(rapid.SampledFrom([]rune("abcdeinorst sthAB01=é字\n")), 2, -1, shortPiece).Draw(t, "piece")
		if short, long := vocabulary.mergeShort(piece), vocabulary.mergeLong(piece); short != long {
			t.Fatalf("%q: %d tokens one by one, %d with a heap", piece, short, long)
		}
	})
}

func TestVocabularyKnowsItsTokensAndNoOthers(t *testing.T) {
	t.Parallel()
	vocabulary, err := newVocabulary()
	if err != nil {
		t.Fatal(err)
	}

	start := uint32(0)
	for rank, end := range vocabulary.ends {
		token := string(vocabulary.slab[start:end])
		if got := vocabulary.rankOf(token); got != uint32(rank) {
			t.Fatalf("token %q has rank %d, want %d", token, got, rank)
		}
		start = end
	}
	for _, text := range []string{"", "qzqzqz", "no token at all", "会话越长早先的内容"} {
		if got := vocabulary.rankOf(text); got != unranked {
			t.Errorf("%q has rank %d, want none", text, got)
		}
	}
}

func TestShortHashesAreDifferent(t *testing.T) {
	t.Parallel()
	vocabulary, err := newVocabulary()
	if err != nil {
		t.Fatal(err)
	}

	seen := map[uint64]string{}
	for _, token := range []string{"", "\x00", "\x00\x00", "\x00\x00\x00", "\x00\x00\x00\x00", "\x00\x00\x00\x00\x00", "a", "a\x00", "a\x00\x00", "aaa", "aaaa", "aaaaa", "abcab", "abcabc"} {
		hash := vocabulary.hash(token)
		if other, taken := seen[hash]; taken {
			t.Errorf("%q and %q have the same hash", token, other)
		}
		seen[hash] = token
	}
}

func BenchmarkNewVocabulary(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newVocabulary(); err != nil {
			b.Fatal(err)
		}
	}
}
