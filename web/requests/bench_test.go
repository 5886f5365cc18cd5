package requests_test

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"palimpsest/migrations/dbtest"
	"palimpsest/web/webtest"
)

// BenchmarkPage opens the list in a workspace of many exchanges, 20,000 without
// PALIMPSEST_BENCH_EXCHANGES, narrowed in every way. It tells how long an answer takes
// from asking to its last byte, on this machine, database and page together. To reach:
// a p95 below 50 ms with a million.
func BenchmarkPage(b *testing.B) {
	exchanges := 20_000
	if text := os.Getenv("PALIMPSEST_BENCH_EXCHANGES"); text != "" {
		var err error
		if exchanges, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	product := webtest.Start(b)
	person := product.SignUp(b, "northbeam")
	start := time.Now()
	dbtest.FillExchanges(b, product.Database.Owner(b), person.Workspace.ID, exchanges)
	b.Logf("%d exchanges in %s", exchanges, time.Since(start))
	session, opened := find(b, person)
	far := person.Get("/requests?to="+time.Now().Add(-48*time.Hour).UTC().Format(time.DateOnly)).Find(`[data-testid="older"]`).AttrOr("href", "/requests")
	for _, c := range []struct{ name, path string }{
		{"everything", "/requests"},
		{"the last day", "/requests?range=24h"},
		{"a page far back", far},
		{"one session", "/requests?session=" + session},
		{"a key", "/requests?key=00000000-0000-0000-0000-000000000003"},
		{"a client", "/requests?client=client-1"},
		{"a rare client", "/requests?client=rare"},
		{"a model", "/requests?model=model-2"},
		{"a rare model", "/requests?model=rare"},
		{"a client and another's model", "/requests?client=rare&model=rare"},
		{"failures", "/requests?status=5xx"},
		{"errors of the proxy", "/requests?error_from=proxy"},
		{"a cache miss", "/requests?miss=provider"},
		{"a module that rarely applied", "/requests?module=patterns:applied"},
		{"a module that never failed", "/requests?module=ipc:failed"},
		{"a tag of most", "/requests?tag=env%3Dprod"},
		{"a rare tag", "/requests?tag=run%3D7"},
		{"a tag and a module that never failed", "/requests?tag=env%3Dprod&module=ipc:failed"},
		{"an id", "/requests?id=" + opened},
		{"one opened", "/requests/" + opened},
	} {
		b.Run(c.name, func(b *testing.B) { measure(b, person, c.path) })
	}
}

// measure opens a page again and again.
func measure(b *testing.B, person *webtest.Person, path string) {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, person.URL+path, http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		for _, cookie := range person.Cookies() {
			request.AddCookie(cookie)
		}
		start := time.Now()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		times = append(times, time.Since(start))
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response.StatusCode, err)
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(times[len(times)*95/100])/1e6, "p95-ms")
}

// find returns a session and a request of the workspace.
func find(b *testing.B, person *webtest.Person) (session, request string) {
	b.Helper()
	err := person.Database.Owner(b).QueryRow(b.Context(), "SELECT session_id::text, id::text FROM exchanges ORDER BY at DESC OFFSET 100 LIMIT 1").Scan(&session, &request)
	if err != nil {
		b.Fatal(err)
	}
	return session, request
}
