package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"palimpsest/api/recorder"
	"palimpsest/api/recorder/recordertest"
	"palimpsest/api/upstream"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/spans"
)

// canned is a provider that answers at once and always alike, without a connection.
type canned struct{}

// Send implements Upstream.
func (canned) Send(_ context.Context, request upstream.Request, _ upstream.Target) (*http.Response, error) {
	if request.Done != nil {
		request.Done()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(quickAnswer)), ContentLength: int64(len(quickAnswer)),
	}, nil
}

// BenchmarkSmallExchange measures what a request of 1 KB costs in the handler alone:
// without connections, and with a database that costs nothing.
func BenchmarkSmallExchange(b *testing.B) { benchmarkExchange(b, nil) }

// BenchmarkTracedExchange is BenchmarkSmallExchange with every request traced, by a receiver
// that costs nothing.
func BenchmarkTracedExchange(b *testing.B) {
	benchmarkExchange(b, spans.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))))
}

func benchmarkExchange(b *testing.B, tracer *spans.Tracer) {
	b.Helper()
	p := setupAt(b, "http://127.0.0.1:1")
	p.Tracer = tracer
	p.Upstream, p.Log = canned{}, slog.New(slog.DiscardHandler)
	database := recordertest.NewDatabase()
	close(database.Open)
	p.Recorder = recorder.New(database, database, database, archivetest.Keys(), p.Metrics.Recorded, p.Log)
	p.Recorder.Start()
	b.Cleanup(p.Recorder.Stop)
	e := echo.New()
	p.Register(e)
	said := strings.Repeat("the answer still sees what matters ", 8)
	b.ReportAllocs()
	asked := 0
	for b.Loop() {
		asked++
		body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":1024,"system":"You help.","messages":[{"role":"user","content":"%s"},`+
			`{"role":"assistant","content":"%s"},{"role":"user","content":"%s %d"}]}`, said, said, said, asked)
		request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, messagesPath, strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer "+testKey)
		request.Header.Set("Anthropic-Version", "2023-06-01")
		answer := httptest.NewRecorder()
		if e.ServeHTTP(answer, request); answer.Code != http.StatusOK {
			b.Fatalf("status %d: %s", answer.Code, answer.Body)
		}
	}
}
