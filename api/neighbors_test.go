package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"palimpsest/tenants"
)

// BenchmarkQuietNeighbor measures the requests of a workspace with one client while
// another workspace does nothing, holds as many streams as it may, or also asks for more
// from eight clients as fast as it is refused. Client, proxy and provider share the
// process; what is recorded stays in memory.
func BenchmarkQuietNeighbor(b *testing.B) {
	const limit = 200
	for _, noise := range []struct {
		name            string
		streams, floods int
	}{{"alone", 0, 0}, {"beside 200 streams", limit, 0}, {"beside 200 streams and a flood", limit, 8}} {
		b.Run(noise.name, func(b *testing.B) {
			arrived := make(chan struct{}, limit)
			p := setup(b, func(w http.ResponseWriter, r *http.Request) {
				asked, _ := io.ReadAll(r.Body)
				if bytes.Contains(asked, []byte("quick")) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, quickAnswer)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, started)
				_ = http.NewResponseController(w).Flush()
				arrived <- struct{}{}
				<-r.Context().Done()
			})
			p.Keys = manyKeys{"noisy": keyOf(tenants.NewWorkspaceID()), "quiet": keyOf(tenants.NewWorkspaceID())}
			p.Concurrency = NewConcurrency(limit)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for range noise.streams {
				response := p.open(ctx, http.MethodPost, messagesPath, heldQuestion, "Authorization", "Bearer noisy")
				defer response.Body.Close()
				<-arrived
			}
			var flood sync.WaitGroup
			for range noise.floods {
				flood.Go(func() {
					for ctx.Err() == nil {
						if got := p.send(http.MethodPost, messagesPath, quickQuestion, "Authorization", "Bearer noisy"); got.status != http.StatusTooManyRequests && ctx.Err() == nil {
							b.Errorf("the flood: status %d", got.status)
							return
						}
					}
				})
			}
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				began := time.Now()
				if got := p.send(http.MethodPost, messagesPath, quickQuestion, "Authorization", "Bearer quiet"); got.status != http.StatusOK {
					b.Fatalf("status %d: %s", got.status, got.body)
				}
				took = append(took, time.Since(began))
			}
			cancel()
			flood.Wait()
			reportTimes(b, took)
		})
	}
}
