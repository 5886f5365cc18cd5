package spans

import (
	"context"
	"errors"
	"net"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"palimpsest/pipeline/expression"
)

// The kinds of errors of steps.
const (
	Canceled = "canceled" // the requester has left
	Timeout  = "timeout"
	Other    = "_OTHER" // OpenTelemetry's name for any other kind
)

// Span is a step in progress. The zero Span belongs to an untraced step, and its methods have no effect.
type Span struct{ span trace.Span }

// Start begins a step within the one in ctx, and returns the context for the new step's own steps. The parts
// of the name are joined with spaces.
func Start(ctx context.Context, names ...string) (context.Context, Span) {
	return start(ctx, trace.SpanKindInternal, names)
}

// StartCall is Start for a step that another server performs.
func StartCall(ctx context.Context, names ...string) (context.Context, Span) {
	return start(ctx, trace.SpanKindClient, names)
}

func start(ctx context.Context, kind trace.SpanKind, names []string) (context.Context, Span) {
	within := trace.SpanFromContext(ctx)
	if !within.SpanContext().IsSampled() {
		return ctx, Span{}
	}
	tracer := within.TracerProvider().Tracer(Scope)
	ctx, span := tracer.Start(ctx, join(names), trace.WithSpanKind(kind)) //nolint:spancheck // the caller ends it
	return ctx, Span{span}                                                //nolint:spancheck // as above
}

// join returns the name of a step, without empty parts at its end.
func join(names []string) string { return strings.TrimRight(strings.Join(names, " "), " ") }

// Of returns the step in ctx.
func Of(ctx context.Context) Span {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsSampled() {
		return Span{}
	}
	return Span{span}
}

// In returns ctx with the step. The step may have ended, because later work on its behalf still belongs to
// it.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// IsOn reports whether the step is traced.
func (s Span) IsOn() bool { return s.span != nil }

// End ends the step. It may be called twice.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// EndWith ends the step with an error, for use with defer.
func (s Span) EndWith(err *error) {
	if s.span == nil {
		return
	}
	if *err != nil {
		s.Fail(KindOf(*err))
	}
	s.span.End()
}

// Fail marks the step as failed with a kind of error.
func (s Span) Fail(kind string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(string(ErrorType), kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// String sets a text attribute, unless it is empty.
func (s Span) String(key Key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(string(key), value))
	}
}

// Strings sets a list attribute with one text, unless it is empty.
func (s Span) Strings(key Key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.StringSlice(string(key), []string{value}))
	}
}

// Int sets a number attribute.
func (s Span) Int(key Key, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(string(key), value))
	}
}

// Seconds sets a fractional number attribute.
func (s Span) Seconds(key Key, value float64) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Float64(string(key), value))
	}
}

// Bool sets a boolean attribute.
func (s Span) Bool(key Key, value bool) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Bool(string(key), value))
	}
}

// name matches names given by programs, including those of models. They contain no text written by a person.
var name = expression.New(`^[A-Za-z0-9_.:/@+-]{1,128}$`)

// Name returns a name from a client or a provider; "" if it may contain other text, which must not be in a
// span.
func Name(given string) string {
	if !name.MatchString(given) {
		return ""
	}
	return given
}

// KindOf returns the kind of an error: Canceled, Timeout or Other.
func KindOf(err error) string {
	failed, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded), isNet && failed.Timeout():
		return Timeout
	default:
		return Other
	}
}
