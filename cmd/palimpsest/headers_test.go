package main

import (
	"log/slog"
	"net/http"
	"strconv"
	"testing"
)

// A request with thousands of headers is refused before anything reads it; one with
// as many as clients send is answered.
func TestManyHeadersAreRefused(t *testing.T) {
	t.Parallel()
	p := &program{log: slog.New(slog.DiscardHandler), failed: make(chan error, 1)}
	listener, err := p.listen(t.Context(), "127.0.0.1:0")
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
