package requests

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/tenants"
	"palimpsest/web/components"
	sessionpage "palimpsest/web/session"
)

// prompts is the difference between two prompts as received.
type prompts struct {
	Words string
	Shown templ.Component // the difference line by line; nil if they are equal
}

const (
	// entriesAtOnce is how many hashes are compared at once.
	entriesAtOnce = 2000
	// mostDiffering is how many messages after the first differing one are compared.
	mostDiffering = 50
)

// prompts compares the messages of two requests.
func (h *Handler) prompts(ctx context.Context, who tenants.Principal, a, b *opened) prompts {
	if !a.MayRead || !b.MayRead || !who.Role.May(tenants.ReadArchive) {
		return prompts{Words: "The workspace does not let you read both conversations."}
	}
	if h.codecOf(a.Request.Endpoint) == nil || h.codecOf(b.Request.Endpoint) == nil || a.Request.Lane == uuid.Nil || b.Request.Lane == uuid.Nil {
		return prompts{Words: "Not both prompts are in the archive."}
	}
	shown, err := h.compared(ctx, a, b)
	if err != nil {
		return prompts{Words: "The prompts could not be compared. Reference " + h.failed(ctx, "prompts", err) + "."}
	}
	return shown
}

func (h *Handler) compared(ctx context.Context, a, b *opened) (prompts, error) {
	same, err := h.same(ctx, a, b)
	if err != nil {
		return prompts{}, err
	}
	messages := func(n int) string { return components.Plural(int64(n), "message") }
	if a.Request.Position == b.Request.Position && same == a.Request.Position {
		return prompts{Words: "Both have the same " + messages(same) + ", byte for byte."}, nil
	}
	was, err := h.plain(ctx, a, same)
	if err != nil {
		return prompts{}, err
	}
	is, err := h.plain(ctx, b, same)
	if err != nil {
		return prompts{}, err
	}
	words := fmt.Sprintf("The first %s are the same, byte for byte. After them, the first request has %s and the second one %s.",
		messages(same), messages(a.Request.Position-same), messages(b.Request.Position-same))
	if same == 0 {
		words = fmt.Sprintf("They share no beginning. The first request has %s and the second one %s.", messages(a.Request.Position), messages(b.Request.Position))
	}
	if a.Request.Position-same > mostDiffering || b.Request.Position-same > mostDiffering {
		words += fmt.Sprintf(" Below are the first %d of them.", mostDiffering)
	}
	if was == is {
		return prompts{Words: words + " Their text is the same."}, nil
	}
	return prompts{Words: words, Shown: sessionpage.Difference(was, is)}, nil
}

// same returns how many messages at the beginning of both requests are equal.
func (h *Handler) same(ctx context.Context, a, b *opened) (int, error) {
	for same := 0; ; {
		limit := min(entriesAtOnce, a.Request.Position-same, b.Request.Position-same)
		if limit <= 0 {
			return same, nil
		}
		first, err := h.deps.Archive.Entries(ctx, a.Workspace, a.Request.Lane, same, limit)
		if err != nil {
			return 0, err
		}
		second, err := h.deps.Archive.Entries(ctx, b.Workspace, b.Request.Lane, same, limit)
		if err != nil {
			return 0, err
		}
		for i := range limit {
			if i >= len(first) || i >= len(second) || first[i].Index != same || second[i].Index != same || first[i].Hash != second[i].Hash {
				return same, nil
			}
			same++
		}
	}
}

// plain returns the text of a request's messages from an index on.
func (h *Handler) plain(ctx context.Context, o *opened, from int) (string, error) {
	entries, err := h.deps.Archive.Originals(ctx, o.Workspace, o.Request.Lane, from, min(o.Request.Position, from+mostDiffering))
	if err != nil {
		return "", err
	}
	if want := min(o.Request.Position-from, mostDiffering); len(entries) < want {
		return "", fmt.Errorf("%d of %d messages of request %s: %w", len(entries), want, o.ID, archive.ErrNotFound)
	}
	raws := make([]json.RawMessage, len(entries))
	for i := range entries {
		raws[i] = entries[i].Raw
	}
	return sessionpage.Plain(h.codecOf(o.Request.Endpoint), raws), nil
}
