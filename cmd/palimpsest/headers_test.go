package main

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/tenants/guard"
)

// A request with thousands of headers is refused before anything reads it; one with
// as many as clients send is answered.
func TestManyHeadersAreRefused(t *testing.T) {
	t.Parallel()
	p := newServers(slog.New(slog.DiscardHandler), &setup.Ending{}, guard.New(false))
	listener, err := p.listen(t.Context(), "PALIMPSEST_ADDR", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := p.serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(func() { _ = server.Close() })
	for count, want := range map[int]int{100: http.StatusNoContent, 10_000: http.StatusRequestHeaderFieldsTooLarge} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for i := range count {
			request.Header.Set("X-Many-"+strconv.Itoa(i), "value")
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatalf("%d headers: %v", count, err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%d headers: status %d, want %d", count, response.StatusCode, want)
		}
	}
}

// Answers of the product API hold keys and people's data: none is kept by a cache or taken
// for another type, errors of the router and of its limits included.
// S41
func TestEveryAnswerOfTheProductAPISaysNoStoreAndNosniff(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("headers")
	session := http.Header{"Cookie": {w.cookies[0].Name + "=" + w.cookies[0].Value}, "Content-Type": {"application/json"}}
	for _, asked := range []struct {
		method, path, body string
		header             http.Header
		status             int
	}{
		{http.MethodGet, "/api/v1/me", "", session, http.StatusOK},
		{http.MethodGet, "/api/v1/openapi.yaml", "", nil, http.StatusOK},
		{http.MethodGet, "/api/v1/requests.csv", "", session, http.StatusOK},
		{http.MethodGet, "/api/v1/me", "", nil, http.StatusUnauthorized},
		{http.MethodPost, "/api/v1/keys", `{"name":""}`, session, http.StatusUnprocessableEntity},
		{http.MethodPost, "/api/v1/keys", strings.Repeat(" ", 2<<20), session, http.StatusRequestEntityTooLarge},
		{http.MethodGet, "/api/v1/nothing", "", nil, http.StatusNotFound},
		{http.MethodGet, "/api/v1", "", nil, http.StatusNotFound},
		{http.MethodPatch, "/api/v1/me", "", nil, http.StatusNotFound},
		{http.MethodOptions, "/api/v1/me", "", nil, 0},
		{http.MethodTrace, "/api/v1/me", "", nil, 0},
	} {
		response, answer := w.asks(asked.method, asked.path, asked.body, asked.header)
		header := response.Header
		if !strings.Contains(header.Get("Cache-Control"), "no-store") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: %d, %q, %q", asked.method, asked.path, response.StatusCode, header.Get("Cache-Control"), header.Get("X-Content-Type-Options"))
		}
		if asked.status != 0 && response.StatusCode != asked.status {
			t.Errorf("%s %s: status %d, want %d: %s", asked.method, asked.path, response.StatusCode, asked.status, answer)
		}
	}
}
