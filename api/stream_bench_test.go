package api

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"
)

// BenchmarkChunk measures how long a chunk of a stream takes from the provider's write
// to the client's read. Client, proxy and provider share the process.
func BenchmarkChunk(b *testing.B) {
	const chunk = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	next := make(prompts)
	p := setup(b, next.stream)
	response := p.open(b.Context(), http.MethodPost, messagesPath, streamed)
	defer response.Body.Close()
	defer close(next)
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		began := time.Now()
		next <- chunk
		read(b, response.Body, chunk)
		took = append(took, time.Since(began))
	}
	reportTimes(b, took)
}

// BenchmarkLeaving measures how long it takes until the provider hears that the client
// of a stream has left.
func BenchmarkLeaving(b *testing.B) {
	left := make(chan struct{})
	p := setup(b, staysOpen(func() { left <- struct{}{} }))
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		response := p.open(ctx, http.MethodPost, messagesPath, streamed)
		read(b, response.Body, started)
		began := time.Now()
		cancel()
		<-left
		took = append(took, time.Since(began))
		_ = response.Body.Close()
	}
	reportTimes(b, took)
}

// reportTimes reports the median and the 99th percentile.
func reportTimes(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
