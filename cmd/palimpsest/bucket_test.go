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

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// S21: while the bucket is down every request passes and is compressed, with its originals
// to be read; what waits for the bucket grows, and once it is back nothing waits.
func TestRequestsPassWhileTheBucketIsDown(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
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
	i := start(t, providerdouble.Config{Window: 30_000, KeepBodies: 1})
	i.shutdown()
	i.config.Storage.BlobURL, i.config.Serving.Role = "s3://key:secret@originals?endpoint="+bucket.URL, settings.RoleAPI // passes are the test's own
	i.boot()
	i.program.sites[0].seams.mover.Segments.Wait = 0
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
		err = i.program.sites[0].seams.work.Pass(context.WithoutCancel(t.Context()), "archive")
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

	i.shutdown()
	i.config.Serving.Role = settings.RoleAll
	i.boot()
	down.Store(true)
	session := w.onlySession()
	for _, path := range []string{"/api/v1/sessions/" + session + "/archive/0", "/api/v1/sessions/" + session + "/export", "/sessions/" + session} {
		response, answer := w.look(path)
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "30" || !strings.Contains(answer, "bucket") {
			t.Errorf("%s while it is down: status %d, Retry-After %q: %.300s", path, response.StatusCode, response.Header.Get("Retry-After"), answer)
		}
		if response.Header.Get("Content-Disposition") != "" {
			t.Errorf("%s: an error is saved as a file", path)
		}
	}
	down.Store(false)
	w.checkOriginals(anthropic.New(), body, ends[len(ends)-1])
}

// look asks for a page or file as a person who is logged in does.
func (w *tenant) look(path string) (*http.Response, string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url(path), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, cookie := range w.cookies {
		request.AddCookie(cookie)
	}
	response, content := w.do(request)
	return response, string(content)
}
