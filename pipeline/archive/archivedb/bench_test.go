package archivedb_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
)

// BenchmarkPut writes batches of messages as the recorder does, each batch in a
// transaction of its own. To reach: 10,000 messages and 50 MB a second. The test
// cluster does not fsync.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{500, 5_000, 50_000} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			f := setup(b)
			const batch = 200
			shared := body(size)
			var next atomic.Int64
			b.SetParallelism(2)
			b.RunParallel(func(pb *testing.PB) {
				lane := f.addLane(b, time.Now())
				for pb.Next() {
					list := make([]archive.Entry, batch)
					for i := range list {
						place := int(next.Add(1))
						list[i] = entry(place, text(shared))
					}
					f.in(b, func(tx *gorm.DB) error { return f.archive.Put(tx, f.workspace, f.session, lane, list) })
				}
			})
			b.ReportMetric(float64(next.Load())/b.Elapsed().Seconds(), "messages/s")
			b.ReportMetric(float64(next.Load())*float64(size)/1e6/b.Elapsed().Seconds(), "MB/s")
		})
	}
}

// BenchmarkPutAgain writes what is stored already.
func BenchmarkPutAgain(b *testing.B) {
	f := setup(b)
	list, shared := make([]archive.Entry, 200), body(5_000)
	for i := range list {
		list[i] = entry(i, text(shared))
	}
	f.put(b, list...)
	for b.Loop() {
		f.put(b, list...)
	}
	b.ReportMetric(float64(len(list)*b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkOriginal reads messages by their place. To reach: one in 0.4 ms, 20 in
// a row in 0.8 ms.
func BenchmarkOriginal(b *testing.B) {
	f := setup(b)
	const stored = 2_000
	list, shared := make([]archive.Entry, stored), body(4_000)
	for i := range list {
		list[i] = entry(i, text(shared))
	}
	f.put(b, list...)
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.archive.Original(b.Context(), f.workspace, f.lane, rand.IntN(stored)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("20 in a row", func(b *testing.B) {
		for b.Loop() {
			from := rand.IntN(stored - 20)
			if got, err := f.archive.Originals(b.Context(), f.workspace, f.lane, from, from+20); err != nil || len(got) != 20 {
				b.Fatal(len(got), err)
			}
		}
	})
}

// body returns the part that all messages of about size bytes share. It
// compresses as code and prose do.
func body(size int) []byte {
	words := []string{"func ", "return ", "if err != nil {\n\t", "}\n", "the ", "of ", "handler ", "request ", "session", ".", ", ", "= ", "(ctx", ") "}
	random := rand.New(rand.NewPCG(7, uint64(size)))
	raw := make([]byte, 0, size+32)
	for len(raw) < size-60 {
		if random.IntN(4) == 0 {
			raw = fmt.Appendf(raw, "%x ", random.Uint32())
			continue
		}
		raw = append(raw, words[random.IntN(len(words))]...)
	}
	return append(raw, `"}`...)
}

// text returns a message that no other call returns.
func text(shared []byte) []byte {
	id := uuid.New()
	raw := append(make([]byte, 0, len(shared)+60), `{"role":"assistant","content":"`...)
	return append(append(raw, id.String()...), shared...)
}
