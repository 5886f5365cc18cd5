package main

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

	"palimpsest/pipeline/spans"
)

const (
	traceFlush   = 5 * time.Second // for unsent spans when the program closes
	traceSilence = time.Minute     // between log lines about lost spans
	maxTraceText = 256             // bytes of an attribute: the rest are names and ids
)

// startTraces starts the tracer, and returns nil if tracing is off. Call it before creating the parts whose
// spans it sends, because parts close in reverse order and the last ones have spans too.
func startTraces(ctx context.Context, setup setup, registry prometheus.Registerer) (*spans.Tracer, error) {
	of := setup.config.Traces
	if !of.IsOn() {
		return nil, nil //nolint:nilnil // a nil tracer traces nothing
	}
	headers, err := pairs(of.Headers)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	attributes, err := of.resource()
	if err != nil {
		return nil, err
	}
	sampler, err := of.sampler()
	if err != nil {
		return nil, err
	}
	sender, err := otlptrace.New(ctx, newTraceSender(of.URL(), headers))
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	told := &telling{SpanExporter: sender, log: setup.log, now: setup.now, spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "palimpsest_spans_total", Help: "Spans that were handed to the receiver of traces, by what came of it.",
	}, []string{"outcome"})}
	registry.MustRegister(told.spans)
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxTraceText
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(told), sdktrace.WithSampler(sampler), sdktrace.WithResource(attributes), sdktrace.WithRawSpanLimits(limits),
	)
	setup.onClose(func() { flushTraces(setup.log, provider, sender, min(traceFlush, setup.longest)) })
	return spans.NewTracer(provider), nil
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

// resource returns the attributes of this process for all of its spans.
func (t Traces) resource() (*resource.Resource, error) {
	said, err := pairs(t.Resource)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	said["service.name"] = cmp.Or(t.Service, said["service.name"], tracesService)
	said["service.version"] = cmp.Or(said["service.version"], version())
	said["service.instance.id"] = cmp.Or(said["service.instance.id"], uuid.NewString())
	attributes := make([]attribute.KeyValue, 0, len(said))
	for name, value := range said {
		attributes = append(attributes, attribute.String(name, value))
	}
	return resource.NewSchemaless(attributes...), nil
}

// sampler returns the sampler of requests. It follows a client's trace flag only if the operator has chosen
// so. Otherwise a client can't get more of its requests traced than others.
func (t Traces) sampler() (sdktrace.Sampler, error) {
	ratio, err := t.Ratio()
	if err != nil {
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %w", err)
	}
	name, follows := strings.CutPrefix(t.Sampler, byParent)
	own := map[string]sdktrace.Sampler{alwaysOn: sdktrace.AlwaysSample(), alwaysOff: sdktrace.NeverSample(), byRatio: byChance(ratio)}[name]
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
