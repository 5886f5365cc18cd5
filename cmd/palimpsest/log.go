package main

import (
	"context"
	"io"
	"log/slog"

	"palimpsest/pipeline/spans"
)

// newLog returns the program's log. Whatever is logged, nothing that looks like a
// secret is written.
func newLog(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(tracing{redacting{slog.NewJSONHandler(w, nil)}})
	}
	return slog.New(tracing{redacting{slog.NewTextHandler(w, nil)}})
}

// tracing is a handler of logs that says which trace and which of its steps a line belongs to.
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
