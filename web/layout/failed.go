package layout

import (
	"context"
	"log/slog"
	"strings"

	"github.com/google/uuid"
)

// Reference writes why a part of a page could not be read to the log, and returns the
// reference that the page shows in its place; empty if err is nil.
func Reference(ctx context.Context, log *slog.Logger, page, card string, err error) string {
	if err == nil {
		return ""
	}
	reference, _, _ := strings.Cut(uuid.NewString(), "-")
	log.ErrorContext(ctx, "card failed", "page", page, "card", card, "reference", reference, "error", err)
	return reference
}
