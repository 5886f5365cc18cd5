package spans

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation.
const Scope = "palimpsest"

// schema is the version of the attributes' naming conventions: the newest with those for GenAI that
// OpenTelemetry provides for Go.
const schema = "https://opentelemetry.io/schemas/1.41.0"

// The headers of W3C Trace Context (https://www.w3.org/TR/trace-context/), and the limits on those of an
// untrusted client.
const (
	traceparent = "Traceparent"
	tracestate  = "Tracestate"

	maxTraceparent = 128 // bytes; version 00 has 55
	maxTracestate  = 512 // the number that must at least be passed on
)

// Tracer begins the spans of requests. A nil Tracer disables tracing.
type Tracer struct{ tracer trace.Tracer }

// NewTracer returns a Tracer that sends its spans to a provider.
func NewTracer(provider trace.TracerProvider) *Tracer {
	return &Tracer{provider.Tracer(Scope, trace.WithSchemaURL(schema))}
}

// Begin begins the span of a request, in the trace from its header. The parts of the name are joined with
// spaces. The context belongs to the trace even if the span is not sampled.
func (t *Tracer) Begin(ctx context.Context, header http.Header, names ...string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if parent := parentIn(header); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx, span := t.tracer.Start(ctx, join(names), trace.WithSpanKind(trace.SpanKindServer))
	if !span.SpanContext().IsSampled() {
		return ctx, Span{}
	}
	return ctx, Span{span}
}

// Carry writes the trace and step of ctx into the header of that step's request. It keeps the header's
// tracestate.
func Carry(ctx context.Context, header http.Header) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// Clean removes invalid trace information from a client's header, since it must not be passed on: a malformed
// traceparent, and a tracestate without one or above its limits.
func Clean(header http.Header) {
	if _, has := header[traceparent]; has && !parentIn(header).IsValid() {
		delete(header, traceparent)
	}
	size := 0
	for _, line := range header[tracestate] {
		size += len(line)
	}
	if _, has := header[traceparent]; !has || size > maxTracestate {
		delete(header, tracestate)
	}
}

// Trace returns the ids of the trace and the step in ctx; "" if absent.
func Trace(ctx context.Context) (traceID, spanID string) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return "", ""
	}
	return span.TraceID().String(), span.SpanID().String()
}

// parentIn returns the step that a header names. It ignores the tracestate, because spans must not contain
// text from clients.
func parentIn(header http.Header) trace.SpanContext {
	values := header[traceparent]
	if len(values) != 1 || len(values[0]) > maxTraceparent {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": values[0]}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
