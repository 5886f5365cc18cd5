package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
)

// readiness is what /readyz answers.
type readiness struct {
	code     int
	Status   string `json:"status"`
	Database string `json:"database"`
	Bucket   string `json:"bucket"`
	Redis    string `json:"redis"`
}

func (i *instance) readiness() readiness {
	i.t.Helper()
	recorded := httptest.NewRecorder()
	i.program.admin.Handler.ServeHTTP(recorded, httptest.NewRequestWithContext(i.t.Context(), http.MethodGet, "/readyz", nil))
	is := readiness{code: recorded.Code}
	if err := json.Unmarshal(recorded.Body.Bytes(), &is); err != nil {
		i.t.Fatalf("/readyz: %v in %s", err, recorded.Body)
	}
	return is
}

// metrics returns what /metrics answers.
func (i *instance) metrics() string {
	i.t.Helper()
	recorded := httptest.NewRecorder()
	i.program.admin.Handler.ServeHTTP(recorded, httptest.NewRequestWithContext(i.t.Context(), http.MethodGet, "/metrics", nil))
	return recorded.Body.String()
}

// A database that is away takes no replica out: each can proxy without it, and says how the
// database is beside.
func TestReplicaIsReadyWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	pair := dbtest.NewPair(t)
	i := startOn(t, pair.OwnerURL, providerdouble.Config{})
	if is := i.readiness(); is != (readiness{code: http.StatusOK, Status: "ready", Database: "up"}) {
		t.Errorf("with its database: %+v", is)
	}
	pair.KillPrimary(t)
	i.until(func() bool {
		is := i.readiness()
		if is.code != http.StatusOK || is.Status != "ready" {
			t.Fatalf("without its database: %+v", is)
		}
		return is.Database == "down"
	})
	if !strings.Contains(i.metrics(), "\npalimpsest_database_up 0\n") {
		t.Errorf("without its database: %s", i.metrics())
	}
	pair.Promote(t)
	i.until(func() bool { return i.readiness().Database == "up" })
	if !strings.Contains(i.metrics(), "\npalimpsest_database_up 1\n") {
		t.Error("the metric does not say that the database is back")
	}
}

// A program that is told to stop says that it is not ready, and takes requests until the
// delay is over.
func TestStoppedProgramTakesRequestsForTheDrainDelay(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("delay")
	over, asked := make(chan time.Time), make(chan time.Duration, 1)
	i.program.Config.Serving.DrainDelay = 7 * time.Second
	i.program.after = func(delay time.Duration) <-chan time.Time { asked <- delay; return over }
	stopped := make(chan struct{})
	go func() {
		i.program.stop(context.WithoutCancel(t.Context()))
		close(stopped)
	}()
	if delay := <-asked; delay != i.program.Config.Serving.DrainDelay {
		t.Errorf("it waits for %s", delay)
	}
	if is := i.readiness(); is != (readiness{code: http.StatusServiceUnavailable, Status: "draining", Database: "up"}) {
		t.Errorf("%+v", is)
	}
	if response, answer := w.post("/v1/messages", []byte(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"still there?"}]}`), nil); response.StatusCode != http.StatusOK {
		t.Errorf("status %d: %s", response.StatusCode, answer)
	}
	close(over)
	<-stopped
	if !isClosed(t.Context(), i.program.addr()) {
		t.Error("connections are still taken")
	}
}

// stops has the program stop, and fails if it does not end.
func (i *instance) stops() {
	i.t.Helper()
	stopped := make(chan struct{})
	go func() {
		i.program.stop(context.WithoutCancel(i.t.Context()))
		close(stopped)
	}()
	i.until(func() bool {
		select {
		case <-stopped:
			return true
		default:
			return false
		}
	})
}

// S23: the streams of open pages, which have no end, end when the program is stopped.
func TestStoppedProgramEndsTheStreamsOfPages(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("pages")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url("/live"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range w.cookies {
		request.AddCookie(cookie)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("status %d, %s", response.StatusCode, kind)
	}
	i.stops()
	if rest, err := io.ReadAll(response.Body); err != nil || strings.Contains(string(rest), "event: end") {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
}

// S23: streams that go on past the drain timeout are cut, so the program ends.
func TestStreamsAreCutAtTheEndOfTheDrainTimeout(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	open := i.tenant("endless").hold()
	i.program.Longest = time.Millisecond
	i.stops()
	for n, stream := range open.streams {
		if rest, err := io.ReadAll(stream); err == nil || len(rest) > 0 {
			t.Errorf("stream %d ends with %q, %v", n, rest, err)
		}
		_ = stream.Close()
	}
}

// S14: profiles hold what the process has in memory. They are there only if they are asked for.
func TestProfilesAreOffUnlessAskedFor(t *testing.T) {
	t.Parallel()
	for asked, want := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		handler := adminHandler(new(program).ready, prometheus.NewRegistry(), asked)
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/symbol"} {
			recorded := httptest.NewRecorder()
			handler.ServeHTTP(recorded, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if recorded.Code != want {
				t.Errorf("%s, asked for: %t: status %d", path, asked, recorded.Code)
			}
		}
	}
	if settings.DefaultConfig().Serving.Profiles {
		t.Error("profiles are on by default")
	}
}
