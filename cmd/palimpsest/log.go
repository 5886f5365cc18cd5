package main

import (
	"context"
	"io"
	"log/slog"

	"palimpsest/pipeline/spans"
)

// newLog returns the program's log. It redacts everything that looks like a secret.
func newLog(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(tracing{redacting{slog.NewJSONHandler(w, nil)}})
	}
	return slog.New(tracing{redacting{slog.NewTextHandler(w, nil)}})
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
