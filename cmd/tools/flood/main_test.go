package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestFloodIsJudged(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	quiet := measured{p99: 10 * ms, ready: ms}
	for name, test := range map[string]struct {
		before, during, after measured
		want                  string // part of the error; "" for none
	}{
		"unharmed":             {quiet, measured{p99: 20 * ms, ready: time.Second}, quiet, ""},
		"slower after it, too": {quiet, measured{p99: 30 * ms}, measured{p99: 15 * ms}, ""},
		"slower":               {quiet, measured{p99: 21 * ms}, quiet, "more than twice"},
		"failures":             {quiet, measured{p99: ms, failed: 1}, quiet, "1 requests of the other tenant failed"},
		"not ready":            {quiet, measured{p99: ms, ready: 2 * time.Second}, quiet, "/readyz took 2s"},
		"failures before it":   {measured{p99: ms, failed: 3}, quiet, quiet, "nothing was shown"},
		"nothing measured":     {measured{}, measured{}, measured{}, "nothing was shown"},
	} {
		err := judge(test.before, test.during, test.after)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Everything that the tool sends arrives, and an installation that fails under it is told.
func TestFloodReachesTheInstallation(t *testing.T) {
	t.Parallel()
	var connections, bodies, signUps atomic.Int64
	installation := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.URL.Path == "/v1/pipeline":
			connections.Add(1)
		case r.URL.Path == "/api/v1/signup":
			signUps.Add(1)
		case r.Header.Get("X-Palimpsest-Base-Url") != "":
			bodies.Add(1)
		case r.Header.Get("X-Api-Key") == "quiet" && connections.Load() == 20:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer installation.Close()
	o := options{url: installation.URL, admin: installation.URL, quiet: "quiet", hostile: "hostile", connections: 20, bodies: 1, signUps: 1, requests: 100}
	if err := run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "requests of the other tenant failed") {
		t.Errorf("an installation that fails: %v", err)
	}
	if connections.Load() < 20 || bodies.Load() == 0 || signUps.Load() == 0 {
		t.Errorf("%d connections, %d bodies and %d sign-ups arrived", connections.Load(), bodies.Load(), signUps.Load())
	}
}
