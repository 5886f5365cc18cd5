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

// The kinds of errors that every step can end with.
const (
	Canceled = "canceled" // who asked for it has left
	Timeout  = "timeout"
	Other    = "_OTHER" // as OpenTelemetry has it: none that is known
)

// Span is a step while it is done. The zero Span is that of a step that is not traced:
// all of its methods do nothing.
type Span struct{ span trace.Span }

// Start begins a step of what ctx belongs to, and returns the context in which the step's
// own steps begin. Its name is what names are, with spaces between them.
func Start(ctx context.Context, names ...string) (context.Context, Span) {
	return start(ctx, trace.SpanKindInternal, names)
}

// StartCall is Start for a step that another server does.
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

// join returns the name of a step; an empty part is left out at its end.
func join(names []string) string { return strings.TrimRight(strings.Join(names, " "), " ") }

// Of returns the step that ctx belongs to.
func Of(ctx context.Context) Span {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsSampled() {
		return Span{}
	}
	return Span{span}
}

// In returns ctx as one that belongs to the step. The step may have ended: what is begun
// later on its behalf belongs to it all the same.
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

// EndWith ends the step with the error that it returns, for a defer.
func (s Span) EndWith(err *error) {
	if s.span == nil {
		return
	}
	if *err != nil {
		s.Fail(KindOf(*err))
	}
	s.span.End()
}

// Fail says that the step failed, and with what kind of error.
func (s Span) Fail(kind string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(string(ErrorType), kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// String notes a text. An empty one is left out.
func (s Span) String(key Key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(string(key), value))
	}
}

// Strings notes a list with one text. An empty one is left out.
func (s Span) Strings(key Key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.StringSlice(string(key), []string{value}))
	}
}

// Int notes a number.
func (s Span) Int(key Key, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(string(key), value))
	}
}

// Seconds notes a number with a fraction.
func (s Span) Seconds(key Key, value float64) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Float64(string(key), value))
	}
}

// Bool notes whether something is so.
func (s Span) Bool(key Key, value bool) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Bool(string(key), value))
	}
}

// name matches names that programs give, those of models among them: they hold nothing that
// a person has written.
var name = expression.New(`^[A-Za-z0-9_.:/@+-]{1,128}$`)

// Name returns a name that a client or a provider has given; empty if it may be more than
// that, for such a thing must be in no span.
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
