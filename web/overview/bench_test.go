package overview_test

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"palimpsest/web/webtest"
)

// BenchmarkOverview opens the page of a workspace with PALIMPSEST_BENCH_EXCHANGES
// exchanges of 90 days, of 30 combinations of client, model and key, in 20,000 sessions.
// It reports the medians and 95th percentiles of the time to the whole page, through HTTP
// on the loopback, and writes them to PALIMPSEST_BENCH_WRITE.
func BenchmarkOverview(b *testing.B) {
	exchanges := 20_000
	if text := os.Getenv("PALIMPSEST_BENCH_EXCHANGES"); text != "" {
		var err error
		if exchanges, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	person := webtest.Start(b).SignUp(b, "northbeam")
	began := time.Now()
	seed(b, person, exchanges)
	b.Logf("%d exchanges recorded in %s", exchanges, time.Since(began).Round(time.Second))
	report := fmt.Sprintf("%s, %d cores, %s, load %s at the end; %d exchanges. Requests one after the other, %d of each kind.\n\n| page | p50 ms | p95 ms | KB |\n| --- | --- | --- | --- |\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS+"/"+runtime.GOARCH, "LOAD", exchanges, max(b.N, 1))
	for _, address := range []string{"range=24h", "range=7d", "range=30d", "range=90d", "range=30d&client=client-1", "range=90d&by=key&model=model-2", "from=2020-01-01T00:00&to=2024-12-30T00:00"} {
		b.Run(address, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			size := 0
			for b.Loop() {
				began := time.Now()
				page := person.Get("/overview?" + address)
				took = append(took, time.Since(began))
				if size = len(page.HTML); page.Status != http.StatusOK || page.Has(`[data-testid="failed"]`) {
					b.Fatalf("status %d: %s", page.Status, page.TestID("failed"))
				}
			}
			slices.Sort(took)
			p50, p95 := took[len(took)/2], took[len(took)*95/100]
			b.ReportMetric(float64(p50.Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(p95.Microseconds())/1000, "p95-ms")
			if len(took) > 20 { // a run to find out how many it takes is none
				report += fmt.Sprintf("| `%s` | %.1f | %.1f | %.0f |\n", address, float64(p50.Microseconds())/1000, float64(p95.Microseconds())/1000, float64(size)/1000)
			}
		})
	}
	if path := os.Getenv("PALIMPSEST_BENCH_WRITE"); path != "" {
		write(b, path, strings.Replace(report, "LOAD", load(), 1))
	}
}

// load returns the machine's load averages.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// write puts a report between the marks of a document.
func write(b *testing.B, path, report string) {
	b.Helper()
	const begin, end = "<!-- make bench-dashboard writes from here -->\n", "<!-- make bench-dashboard writes to here -->"
	document, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	before, rest, found := strings.Cut(string(document), begin)
	_, after, also := strings.Cut(rest, end)
	if !found || !also {
		b.Fatalf("%s has no place for figures", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+"\n"+report+"\n"+end+after), 0o600); err != nil {
		b.Fatal(err)
	}
}

// seed records exchanges past the proxy, a hundred thousand at once; the trigger adds
// them up as it does for the proxy.
func seed(b *testing.B, person *webtest.Person, exchanges int) {
	b.Helper()
	const batch = 100_000
	owner := person.Database.Owner(b)
	run := func(statement string, arguments ...any) {
		b.Helper()
		if _, err := owner.Exec(b.Context(), statement, arguments...); err != nil {
			b.Fatalf("%.80s: %v", statement, err)
		}
	}
	run(`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, title, started_at, last_at, exchanges, epochs, net_microusd)
		SELECT $1, md5('s' || n)::uuid, md5('key' || n % 5)::uuid, 'anthropic', 'header', 'Session ' || n,
			now() - n * interval '6 minutes', now() - n * interval '6 minutes', 50, n % 3, (n % 100) * 1000 - 20000 FROM generate_series(1, 20000) n`, person.Workspace.ID)
	run(`INSERT INTO lanes (workspace_id, id, session_id, created_at, last_at)
		SELECT $1, md5('l' || n)::uuid, md5('s' || n)::uuid, now(), now() FROM generate_series(1, 20000) n`, person.Workspace.ID)
	run(`INSERT INTO epochs (workspace_id, lane_id, number, covers, chain, projection, reason, tokens_before, tokens_after)
		SELECT $1, md5('l' || n)::uuid, number, 1, 'c', 'p', 'target', 2, 1 FROM generate_series(1, 20000) n CROSS JOIN generate_series(1, n % 3) number`, person.Workspace.ID)
	for from := 0; from < exchanges; from += batch {
		run(`INSERT INTO exchanges (workspace_id, id, at, session_id, lane_id, api_key_id, provider, endpoint, model, client, class, stream, status, position, compression,
				tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3, input_tokens, cache_read_tokens, cache_write_tokens,
				output_tokens, cost_microusd, net_microusd, unread_microusd, overhead_us, ttfb_us, duration_us, attempts, miss_cause, missed_tokens, projection, report)
			SELECT $1, gen_random_uuid(), now() - n * (interval '90 days' / $4), md5('s' || n % 20000)::uuid, md5('l' || n % 20000)::uuid, md5('key' || n % 5)::uuid,
				'anthropic', '/v1/messages', 'model-' || n % 3, 'client-' || n % 2, 'main', true, CASE n % 97 WHEN 0 THEN 529 ELSE 200 END, 40,
				CASE n % 50 WHEN 0 THEN 'epoch' ELSE 'frozen' END, 90000 + n % 9973, 50000 + n % 997, 200000, 20, 30, 10, 5, 1200, 46000, 900, 400,
				30000, 9000 - n % 7919, 4000, (300 * exp(8 * random()))::bigint, 1, 1, 1, CASE n % 20 WHEN 0 THEN 'ttl_expiry' WHEN 1 THEN 'prefix_change_ours' ELSE '' END,
				CASE WHEN n % 20 < 2 THEN 4000 ELSE 0 END, 1, '{"compression": "frozen", "modules": [{"name": "ipc", "outcome": "applied"}]}'
			FROM generate_series($2::int + 1, $3::int) n`, person.Workspace.ID, from, min(from+batch, exchanges), exchanges)
	}
	run("ANALYZE")
}
