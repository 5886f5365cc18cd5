package archivedb_test

import (
	"testing"

	"palimpsest/pipeline/archive"
)

// BenchmarkPutSealed is a batch of 200 messages of 5,000 bytes, stored open and sealed.
func BenchmarkPutSealed(b *testing.B) {
	for name, f := range map[string]*fixture{"open": setup(b), "sealed": sealedSetup(b)} {
		b.Run(name, func(b *testing.B) {
			shared, next := body(5_000), 0
			for b.Loop() {
				list := make([]archive.Entry, 200)
				for i := range list {
					list[i] = entry(next, text(shared))
					next++
				}
				f.put(b, list...)
			}
			b.ReportMetric(float64(next)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
