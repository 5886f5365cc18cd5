package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
)

// BenchmarkNeighborOfSlowHeaders measures the requests of one client, alone and beside
// 500 connections that never end their headers and are opened again when they are cut
// off. Client, slow clients, program, database and provider double share the machine.
func BenchmarkNeighborOfSlowHeaders(b *testing.B) {
	w := start(b, providerdouble.Config{}).tenant("patient")
	for _, slow := range []struct {
		name        string
		connections int
	}{{"alone", 0}, {"beside 500 slow connections", 500}} {
		b.Run(slow.name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var open, closed sync.WaitGroup
			open.Add(slow.connections)
			for range slow.connections {
				closed.Go(func() {
					opened := sync.OnceFunc(open.Done)
					defer opened()
					for ctx.Err() == nil {
						dawdle(ctx, b, w.program.addr(), opened)
					}
				})
			}
			open.Wait()
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				began := time.Now()
				if response, answer := w.post("/v1/messages", []byte(smallMessage), nil); response.StatusCode != http.StatusOK {
					b.Fatalf("status %d: %s", response.StatusCode, answer)
				}
				took = append(took, time.Since(began))
			}
			cancel()
			closed.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// dawdle begins headers, says so, and ends when it is cut off or with the context.
func dawdle(ctx context.Context, b *testing.B, address string, begun func()) {
	b.Helper()
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		if ctx.Err() == nil {
			b.Error(err)
		}
		return
	}
	defer connection.Close()
	stop := context.AfterFunc(ctx, func() { _ = connection.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(connection, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Slow:"); err != nil {
		return
	}
	begun()
	_, _ = io.Copy(io.Discard, connection)
}
