package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// S21: while the bucket is down every request passes and is compressed, with its originals
// to be read; what waits for the bucket grows, and once it is back nothing waits.
func TestRequestsPassWhileTheBucketIsDown(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	if err := backend.CreateBucket("originals"); err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	serve := gofakes3.New(backend).Server()
	bucket := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler) // breaks the connection
		}
		serve.ServeHTTP(out, r)
	}))
	t.Cleanup(bucket.Close)
	i := start(t, providertest.Config{Window: 30_000, KeepBodies: 1})
	i.shutdown()
	i.config.BlobURL, i.config.Role = "s3://key:secret@originals?endpoint="+bucket.URL, RoleAPI // passes are the test's own
	i.boot()
	w := i.tenant("bucket")
	w.setPipelinef("ipc:\n  contextWindow: 30000\n")
	body := generated(i.double, 120)
	envelope, ends := requests(t, anthropic.New(), body)
	send := func(from, to int) {
		t.Helper()
		epochs := 0
		for _, length := range ends[from:to] {
			response, answer := w.post("/v1/messages", envelope.Seal([]wire.Piece{{From: 0, To: length}}), map[string]string{"X-Palimpsest-Session-Id": "bucket"})
			if response.StatusCode != http.StatusOK {
				t.Fatalf("status %d: %s", response.StatusCode, answer)
			}
			if response.Header.Get("X-Palimpsest-Archived") != "0" {
				epochs++
				w.checkOriginals(anthropic.New(), body, length)
			}
		}
		if epochs == 0 {
			t.Fatal("nothing was compressed")
		}
		w.untilArchived(ends[to-1])
	}
	pass := func() (pending int, err error) {
		t.Helper()
		err = i.program.seams.work.Pass(context.WithoutCancel(t.Context()), "archive")
		_, after, _ := strings.Cut(w.metrics(), "\npalimpsest_archive_pending_objects ")
		value, _, _ := strings.Cut(after, "\n")
		pending, atoiErr := strconv.Atoi(value)
		if atoiErr != nil {
			t.Fatal(atoiErr)
		}
		return pending, err
	}

	down.Store(true)
	send(0, len(ends)/2)
	first, err := pass()
	if err == nil || first == 0 {
		t.Errorf("while it is down %d objects wait, %v", first, err)
	}
	send(len(ends)/2, len(ends))
	second, err := pass()
	if err == nil || second <= first {
		t.Errorf("then %d objects wait after %d, %v", second, first, err)
	}
	down.Store(false)
	if left, err := pass(); err != nil || left != 0 {
		t.Errorf("once it is back %d objects wait, %v", left, err)
	}
	w.checkOriginals(anthropic.New(), body, ends[len(ends)-1])
}
