package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// zeroes counts how much of an endless body was read.
type zeroes struct{ read int64 }

func (z *zeroes) Read(p []byte) (int, error) {
	clear(p)
	z.read += int64(len(p))
	return len(p), nil
}

// S17: a body that says that it is too large is refused before it is read; who waits
// for leave to send it is given the answer instead.
func TestLargeBodyIsRefusedUnread(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	body := &zeroes{}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+messagesPath, io.NopCloser(body))
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = 1 << 40
	request.Header.Set("X-Api-Key", testKey)
	request.Header.Set("Expect", "100-continue")
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge || body.read > 0 {
		t.Errorf("status %d, %d bytes were sent", response.StatusCode, body.read)
	}
}

// S17: what a few kilobytes unpack to is held in less than twice the memory that a
// body may have, and let go.
func TestBombIsStoppedAtTheLimit(t *testing.T) {
	var packed bytes.Buffer
	encoder, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(encoder, &zeroes{}, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := encoder.Close(); err != nil {
		t.Fatal(err)
	}
	decoder, err := zstd.NewReader(bytes.NewReader(packed.Bytes()), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)) // a Buffer would be decoded at once
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	var all bodies
	largest := uint64(0)
	watched := readerFunc(func(into []byte) (int, error) {
		var now runtime.MemStats
		if len(into) >= 1<<20 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			largest = max(largest, now.HeapAlloc)
		}
		return decoder.Read(into)
	})
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	body, err := all.read(watched, -1, func(int) error { return nil })

	if body != nil || err == nil || !strings.Contains(err.Error(), errBodyTooLarge.Error()) {
		t.Errorf("read %v, %v", body, err)
	}
	if grown := int64(largest) - int64(before.HeapAlloc); grown >= 2*maxBody || grown < maxBody/2 {
		t.Errorf("%d bytes were held at most", grown)
	}
}

type readerFunc func(into []byte) (int, error)

func (f readerFunc) Read(into []byte) (int, error) { return f(into) }

// S24: a thousand clients that leave in the middle of a stream leave nothing running.
func TestAThousandAbortsLeaveNothingRunning(t *testing.T) {
	p := setup(t, staysOpen(func() {}))
	abort := func() {
		ctx, cancel := context.WithCancel(t.Context())
		response := p.open(ctx, http.MethodPost, messagesPath, streamed)
		read(t, response.Body, started)
		cancel()
		_ = response.Body.Close()
	}
	for range 20 {
		abort() // what stays with a few stays with a thousand
	}
	settled := settledGoroutines(1 << 30)
	for range 1000 {
		abort()
	}
	if now := settledGoroutines(settled + 20); now > settled+20 {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, were %d:\n%s", now, settled, stacks[:runtime.Stack(stacks, true)])
	}
}

// settledGoroutines waits until there are at most so many goroutines or their number
// does not change any more, and returns it.
func settledGoroutines(most int) int {
	const still = 20
	last, same := runtime.NumGoroutine(), 0
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		now := runtime.NumGoroutine()
		if same++; now != last {
			last, same = now, 0
		}
		if most < 1<<30 && now <= most || same >= still && most == 1<<30 || time.Now().After(deadline) {
			return now
		}
	}
	return last
}
