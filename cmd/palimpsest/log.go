package main

import (
	"io"
	"log/slog"
)

// newLog returns the program's log. Whatever is logged, nothing that looks like a
// secret is written.
func newLog(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(redacting{slog.NewJSONHandler(w, nil)})
	}
	return slog.New(redacting{slog.NewTextHandler(w, nil)})
}
