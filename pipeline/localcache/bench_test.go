package localcache_test

import (
	"encoding/binary"
	"testing"

	"github.com/maypok86/otter/v2"

	"palimpsest/pipeline/localcache"
)

// benchmarkKeys is how many values the benchmarks look up in turn.
const benchmarkKeys = 10_000

func keyOf(i int) (key [32]byte) {
	binary.LittleEndian.PutUint64(key[:], uint64(i))
	return key
}

// BenchmarkGet is what a look into a cache takes; its floor is otter without us.
func BenchmarkGet(b *testing.B) {
	value := new(int)
	b.Run("ours", func(b *testing.B) {
		cache := open[[32]byte](b, localcache.Options[*int]{MaximumSize: 2 * benchmarkKeys})
		for i := range benchmarkKeys {
			cache.Set(keyOf(i), value)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if got, _ := cache.Get(keyOf(i % benchmarkKeys)); got != value {
				b.Fatal("not found")
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		cache := otter.Must(&otter.Options[[32]byte, *int]{MaximumSize: 2 * benchmarkKeys})
		for i := range benchmarkKeys {
			cache.Set(keyOf(i), value)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if got, _ := cache.GetIfPresent(keyOf(i % benchmarkKeys)); got != value {
				b.Fatal("not found")
			}
		}
	})
}
