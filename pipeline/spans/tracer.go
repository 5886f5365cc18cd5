package spans

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Scope names what makes the spans.
const Scope = "palimpsest"

// schema says which conventions the names of attributes follow: the newest that hold those
// for GenAI and that OpenTelemetry has for Go.
const schema = "https://opentelemetry.io/schemas/1.41.0"

// The headers of W3C Trace Context (https://www.w3.org/TR/trace-context/), and what they
// may have of a client that nobody trusts.
const (
	traceparent = "Traceparent"
	tracestate  = "Tracestate"

	maxTraceparent = 128 // bytes; version 00 has 55
	maxTracestate  = 512 // as many must be passed on
)

// Tracer begins the spans of requests. A nil Tracer begins none.
type Tracer struct{ tracer trace.Tracer }

// NewTracer returns a Tracer whose spans a provider takes.
func NewTracer(provider trace.TracerProvider) *Tracer {
	return &Tracer{provider.Tracer(Scope, trace.WithSchemaURL(schema))}
}

// Begin begins the span of a request that has come with a header, in the trace that this
// names. Its name is what names are, with spaces between them. The context belongs to
// the trace also where the span is not among those that are kept.
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

// Carry writes the trace and the step that ctx belongs to into the header of a request of
// that step. What the header says of the trace itself, tracestate, stays.
func Carry(ctx context.Context, header http.Header) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// Clean takes out of a client's header what it says of a trace and must not be passed on: a
// malformed traceparent, and a tracestate without one or beyond its bounds.
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

// Trace returns the ids of the trace and the step that ctx belongs to; empty if it belongs
// to none.
func Trace(ctx context.Context) (traceID, spanID string) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return "", ""
	}
	return span.TraceID().String(), span.SpanID().String()
}

// parentIn returns the step that a header names. Its tracestate is not read: spans are not
// to hold what clients write.
func parentIn(header http.Header) trace.SpanContext {
	values := header[traceparent]
	if len(values) != 1 || len(values[0]) > maxTraceparent {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": values[0]}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
