package jobsdb

import (
	"context"
	"log/slog"
)

// quiet returns a log for River's own messages, warnings and above. Workers log failed jobs themselves.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(fromWarnings{log.Handler()}) }

type fromWarnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h fromWarnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h fromWarnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return fromWarnings{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h fromWarnings) WithGroup(name string) slog.Handler {
	return fromWarnings{h.Handler.WithGroup(name)}
}
