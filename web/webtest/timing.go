package webtest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline/reporttest"
)

// Timings measures pages' response times and reports them as a table in Markdown.
type Timings struct {
	rows strings.Builder
	each int // requests for each page
}

// fewest is the minimum number of requests for a row of a table, because with fewer the testing package is
// still calibrating.
const fewest = 20

// Measure requests a page repeatedly, as a logged-in browser does, and reports the median and the 95th
// percentile of the time to the last byte, and the size before compression. It fails the benchmark for any
// status but 200, and for a card that did not load.
func (t *Timings) Measure(b *testing.B, person *Person, name, path string, header ...string) {
	b.Helper()
	var took []time.Duration
	var body []byte
	for b.Loop() {
		began := time.Now()
		body = person.read(b, path, header)
		took = append(took, time.Since(began))
	}
	if strings.Contains(string(body), `data-testid="failed"`) {
		b.Fatalf("%s: a card did not load", path)
	}
	slices.Sort(took)
	p50, p95 := milliseconds(took[len(took)/2]), milliseconds(took[len(took)*95/100])
	b.ReportMetric(p50, "p50-ms")
	b.ReportMetric(p95, "p95-ms")
	b.ReportMetric(float64(len(body))/1000, "KB")
	if t.each = len(took); t.each >= fewest {
		fmt.Fprintf(&t.rows, "| %s | %.1f | %.1f | %.0f |\n", name, p50, p95, float64(len(body))/1000)
	}
}

// Write puts the table into a document between the marks of a Makefile target, below the machine's name and a
// description of the measurement.
func (t *Timings) Write(b *testing.B, path, target, measured string) {
	b.Helper()
	report := fmt.Sprintf("%s, %s at the end; %s. Each page was asked for %d times, one after the other.\n\n| page | p50 ms | p95 ms | KB |\n| --- | --- | --- | --- |\n%s",
		time.Now().UTC().Format(time.DateOnly), Machine(), measured, t.each, t.rows.String())
	if err := reporttest.Write(path, target, report); err != nil {
		b.Fatal(err)
	}
}

// Machine describes the machine of a benchmark and its load.
func Machine() string { return reporttest.Machine() + ", load " + load() }

// read returns a page's body.
func (p *Person) read(b *testing.B, path string, header []string) []byte {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, p.address(path), http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := p.client.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s: status %d, %v", path, response.StatusCode, err)
	}
	return body
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// load returns the machine's load averages.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
