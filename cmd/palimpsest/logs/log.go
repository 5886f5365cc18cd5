// Package logs makes the logs of the program, without secrets and with the ids of traces.
package logs

import (
	"context"
	"io"
	"log/slog"

	"palimpsest/pipeline/spans"
)

// New returns the program's log. It redacts everything that looks like a secret.
func New(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(tracing{redacting{slog.NewJSONHandler(w, nil)}})
	}
	return slog.New(tracing{redacting{slog.NewTextHandler(w, nil)}})
}

// NewWarnings returns a log of warnings and errors alone.
func NewWarnings(w io.Writer) *slog.Logger {
	return slog.New(redacting{slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})})
}

// tracing is a log handler that adds the trace and the span to each line.
type tracing struct{ slog.Handler }

// Handle implements slog.Handler.
func (t tracing) Handle(ctx context.Context, record slog.Record) error {
	if traceID, spanID := spans.Trace(ctx); traceID != "" {
		record = record.Clone()
		record.AddAttrs(slog.String("trace_id", traceID), slog.String("span_id", spanID))
	}
	return t.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (t tracing) WithAttrs(attributes []slog.Attr) slog.Handler {
	return tracing{t.Handler.WithAttrs(attributes)}
}

// WithGroup implements slog.Handler.
func (t tracing) WithGroup(name string) slog.Handler { return tracing{t.Handler.WithGroup(name)} }
