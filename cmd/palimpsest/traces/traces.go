// Package traces sends the spans of requests to a receiver of OpenTelemetry.
package traces

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/pipeline/spans"
)

const (
	traceFlush   = 5 * time.Second // for unsent spans when the program closes
	traceSilence = time.Minute     // between log lines about lost spans
	maxTraceText = 256             // bytes of an attribute: the rest are names and ids
)

// Report says where the sender of spans reports what came of them.
type Report struct {
	Log     *slog.Logger
	Now     func() time.Time
	Metrics prometheus.Registerer
}

// Start starts the tracer of a version of the program, and returns nil if tracing is off. Call it before creating
// the parts whose spans it sends, and end after closing them, because the last ones have spans too.
func Start(ctx context.Context, of settings.Traces, version string, report Report) (tracer *spans.Tracer, end func(within time.Duration), err error) {
	if !of.IsOn() {
		return nil, func(time.Duration) {}, nil
	}
	headers, err := settings.Pairs(of.Headers)
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	attributes, err := resourceOf(of, version)
	if err != nil {
		return nil, nil, err
	}
	sampler, err := samplerOf(of)
	if err != nil {
		return nil, nil, err
	}
	sender, err := otlptrace.New(ctx, newTraceSender(of.URL(), headers))
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	told := &telling{SpanExporter: sender, log: report.Log, now: report.Now, spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "palimpsest_spans_total", Help: "Spans that were handed to the receiver of traces, by what came of it.",
	}, []string{"outcome"})}
	report.Metrics.MustRegister(told.spans)
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxTraceText
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(told), sdktrace.WithSampler(sampler), sdktrace.WithResource(attributes), sdktrace.WithRawSpanLimits(limits),
	)
	return spans.NewTracer(provider), func(within time.Duration) { flushTraces(report.Log, provider, sender, min(traceFlush, within)) }, nil
}

// flushTraces sends the remaining spans, within a time.
func flushTraces(log *slog.Logger, provider *sdktrace.TracerProvider, sender sdktrace.SpanExporter, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := provider.Shutdown(ctx); err != nil {
		log.Warn("spans were lost at the end", "error", err)
		_ = sender.Shutdown(ctx) // ends a running request
	}
}

// resourceOf returns the attributes of this process for all of its spans.
func resourceOf(t settings.Traces, version string) (*resource.Resource, error) {
	said, err := settings.Pairs(t.Resource)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	said["service.name"] = cmp.Or(t.Service, said["service.name"], settings.TracesService)
	said["service.version"] = cmp.Or(said["service.version"], version)
	said["service.instance.id"] = cmp.Or(said["service.instance.id"], uuid.NewString())
	attributes := make([]attribute.KeyValue, 0, len(said))
	for name, value := range said {
		attributes = append(attributes, attribute.String(name, value))
	}
	return resource.NewSchemaless(attributes...), nil
}

// samplerOf returns the sampler of requests. It follows a client's trace flag only if the operator has chosen
// so. Otherwise a client can't get more of its requests traced than others.
func samplerOf(t settings.Traces) (sdktrace.Sampler, error) {
	ratio, err := t.Ratio()
	if err != nil {
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %w", err)
	}
	name, follows := strings.CutPrefix(t.Sampler, settings.ByParent)
	own := map[string]sdktrace.Sampler{settings.AlwaysOn: sdktrace.AlwaysSample(), settings.AlwaysOff: sdktrace.NeverSample(), settings.ByRatio: byChance(ratio)}[name]
	if own == nil {
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is unknown", t.Sampler)
	}
	if follows {
		return sdktrace.ParentBased(own), nil
	}
	return sdktrace.ParentBased(own, sdktrace.WithRemoteParentSampled(own), sdktrace.WithRemoteParentNotSampled(own)), nil
}

// byChance samples a share of the requests at random. The SDK's own sampler uses the trace's id, which a
// client can choose.
type byChance float64

// ShouldSample implements sdktrace.Sampler.
func (b byChance) ShouldSample(parameters sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if rand.Float64() < float64(b) { //nolint:gosec // nothing is secret about it
		return sdktrace.AlwaysSample().ShouldSample(parameters)
	}
	return sdktrace.NeverSample().ShouldSample(parameters)
}

// Description implements sdktrace.Sampler.
func (b byChance) Description() string { return fmt.Sprintf("byChance{%g}", float64(b)) }

// telling sends spans, and reports the outcome to the metrics and the log. It never fails, because a
// failure concerns only the operator.
type telling struct {
	sdktrace.SpanExporter

	log   *slog.Logger
	now   func() time.Time
	spans *prometheus.CounterVec

	mu   sync.Mutex
	said time.Time // time of the last log line about lost spans
}

// ExportSpans implements sdktrace.SpanExporter.
func (t *telling) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, batch)
	if err == nil {
		t.spans.WithLabelValues("sent").Add(float64(len(batch)))
		return nil
	}
	t.spans.WithLabelValues("lost").Add(float64(len(batch)))
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); t.said.IsZero() || now.Sub(t.said) >= traceSilence {
		t.said = now
		t.log.WarnContext(ctx, "spans are lost; look at OTEL_EXPORTER_OTLP_ENDPOINT and its receiver", "spans", len(batch), "error", err)
	}
	return nil
}

// Interface guards.
var (
	_ sdktrace.Sampler      = byChance(0)
	_ sdktrace.SpanExporter = (*telling)(nil)
)
