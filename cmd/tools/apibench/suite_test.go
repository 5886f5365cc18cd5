package apibench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestComparisonSendsEachCaseToEachRoute(t *testing.T) {
	t.Parallel()
	direct, toDirect := record(t, func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, `{"stop_reason":"end_turn"}`) })
	ours, toOurs := record(t, finished)

	var bench Bench
	routes := []Route{
		{Name: directRoute, Targets: map[Place]Target{Tight: toDirect}},
		{Name: ourRoute, Targets: map[Place]Target{Tight: toOurs}},
	}
	wanted := Case{Name: "small", Size: small, Place: Tight, Clients: 2, Requests: 10, WarmUp: 1, Compression: "frozen"}
	rows, err := bench.Compare(t.Context(), wanted, routes, 3)
	if err != nil {
		t.Fatal(err)
	}

	if direct.requests != 36 || ours.requests != 36 {
		t.Errorf("%d and %d requests, want 36 each", direct.requests, ours.requests)
	}
	for _, row := range rows {
		if row.Answered != 30 || row.Fault() != "" || row.P50 <= 0 || row.P99 < row.P50 {
			t.Errorf("%+v", row)
		}
	}
	if rows[0].Added50 != 0 || rows[0].Own50 != 0 || rows[1].Own50 != 1250*time.Microsecond {
		t.Errorf("direct added %v, own work %v", rows[0].Added50, rows[1].Own50)
	}
}

func TestRecordsDroppedDuringACaseAreCounted(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "# TYPE %s counter\n%s %d\nother 9\n", droppedMetric, droppedMetric, 3+4*(asked.Add(1)-1))
	}))
	t.Cleanup(metrics.Close)
	_, target := record(t, finished)
	target.Admin = metrics.URL
	shared := target
	shared.Others = []Replica{{URL: target.URL, Admin: metrics.URL}, {URL: target.URL}}

	var bench Bench
	wanted := Case{Name: "small", Size: small, Clients: 1, Requests: 2, Compression: "frozen"}
	for want, target := range map[int]Target{4: target, 4 * 4: shared} { // each look finds four more
		rows, err := bench.Compare(t.Context(), wanted, []Route{{Name: ourRoute, Targets: map[Place]Target{Roomy: target}}}, 2)
		if err != nil || rows[0].Dropped != want {
			t.Errorf("%d dropped, want %d: %v", rows[0].Dropped, want, err)
		}
	}
}

func TestAProgramThatDoesNotSayWhatItDropsIsNotMeasured(t *testing.T) {
	t.Parallel()
	metrics := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(metrics.Close)

	var bench Bench
	target := Target{Admin: metrics.URL}
	if _, err := bench.Compare(t.Context(), Case{Size: small}, []Route{{Targets: map[Place]Target{Roomy: target}}}, 1); err == nil {
		t.Error("no error")
	}
}

func TestRowFigureIsTheMedianOfTheRounds(t *testing.T) {
	t.Parallel()

	outcome := func(ms int) Outcome {
		took := time.Duration(ms) * time.Millisecond
		return Outcome{Answered: 1, Total: Distribution{took}, FirstByte: Distribution{took / 2}, PerSecond: float64(ms), CPU: took}
	}
	direct := []Outcome{outcome(10), outcome(50), outcome(20)}
	ours := []Outcome{outcome(12), outcome(51), outcome(26)}
	row := newRow(Case{}, "palimpsest", ours, direct)

	if row.P50 != 26*time.Millisecond || row.Added50 != 2*time.Millisecond || row.AddedFirst50 != time.Millisecond {
		t.Errorf("p50 %v, added %v, to the first byte %v", row.P50, row.Added50, row.AddedFirst50)
	}
	if row.PerSecond != 26 || row.CPU != 26*time.Millisecond || row.Answered != 3 {
		t.Errorf("%+v", row)
	}
}

func TestRowNamesWhatIsWrongWithItsAnswers(t *testing.T) {
	t.Parallel()

	wanted := Case{Compression: "frozen"}
	for name, test := range map[string]struct {
		row  Row
		want string
	}{
		"all well":          {Row{Case: wanted, Answered: 2, Compressions: map[string]int{"frozen": 2}}, ""},
		"no word, no proxy": {Row{Case: wanted, Answered: 2}, ""},
		"failed":            {Row{Case: wanted, Answered: 1, Failed: 1, Failures: []error{io.ErrUnexpectedEOF}}, "1 failed: [unexpected EOF]"},
		"dropped":           {Row{Case: wanted, Answered: 2, Dropped: 7, Compressions: map[string]int{"frozen": 2}}, "7 records dropped"},
		"other word":        {Row{Case: wanted, Answered: 2, Compressions: map[string]int{"frozen": 1, "none": 1}}, "want 2 × frozen, got map[frozen:1 none:1]"},
	} {
		if got := test.row.Fault(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTableSetsFiguresBesideGoals(t *testing.T) {
	t.Parallel()

	wanted := Case{Name: "steady", Goal: Goal{P50: time.Millisecond, PerSecond: 500, MemoryPeak: 100 << 20, Database: time.Millisecond, TimesFloor: 1}}
	table := Table([]Row{
		{Case: wanted, Route: "direct", P50: 2 * time.Millisecond, P99: 3 * time.Millisecond, PerSecond: 900},
		{
			Case: wanted, Route: "palimpsest", P50: 4 * time.Millisecond, P99: 5 * time.Millisecond,
			Added50: 2 * time.Millisecond, Added99: -time.Millisecond, TimesFloor: 1.6, ShareOfRate: 0.67, PerSecond: 600, MemoryPeak: 90 << 20,
			CPU: 3 * time.Millisecond, DatabaseCPU: time.Millisecond, Floor99: 1.7,
		},
	})

	for _, want := range []string{
		"| steady | direct | 2.00 | 3.00 |  |  |  |",
		"| steady | palimpsest | 4.00 | 5.00 | +2.00 / -1.00 | 1.6 |",
		"| 3.00 | 1.00 | 600 | 250 | 90 | p50 ≤ 1.00: **no**, database CPU ≤ 1.00: yes, p99 ≤ 1 × the floor's: **no** (1.7), ≥ 500/s: yes (0.67 of the floor's), ≤ 100 MB: yes |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}

func TestPartsAreTheLinesWithResults(t *testing.T) {
	t.Parallel()

	got := Parts("goos: linux\npkg: palimpsest/pipeline/wire\nBenchmarkOpen-2 \t 10 \t 5 ns/op\nBenchmarkOpen\nPASS\nok\tpalimpsest/pipeline/wire\t1s\n")
	if !strings.Contains(got, "```text\npkg: palimpsest/pipeline/wire\nBenchmarkOpen-2 \t 10 \t 5 ns/op\n```") {
		t.Errorf("got\n%s", got)
	}
}
