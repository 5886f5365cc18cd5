package tenants

import (
	"context"
	"slices"

	"github.com/google/uuid"
)

// Visible are the API keys that a reader may see, with their sessions, requests and figures.
type Visible struct {
	All  bool
	Keys []uuid.UUID // if not All
}

// Visible returns what the reader may see, given their permissions: everything with ReadSpend or with the right to
// read every session, otherwise the keys that they hold.
func (r Reader) Visible(may func(Permission) bool) Visible {
	if may(ReadSpend) || r.All {
		return Visible{All: true}
	}
	return Visible{Keys: r.Held}
}

// Has reports whether an API key is visible.
func (v Visible) Has(apiKey uuid.UUID) bool { return v.All || slices.Contains(v.Keys, apiKey) }

// IDs returns the visible API keys, or nil for all.
func (v Visible) IDs() []uuid.UUID {
	if v.All {
		return nil
	}
	return append([]uuid.UUID{}, v.Keys...)
}

type visibleKey struct{}

// WithVisible returns a context in which the stores answer a reader with what they may see. It must be set for every
// request of a person or an API key.
func WithVisible(ctx context.Context, visible Visible) context.Context {
	return context.WithValue(ctx, visibleKey{}, visible)
}

// OwnWork returns the context of the program's own work, which has no reader and sees everything. Nothing of what it
// sees may go to a person or an API key without another check. pipeline/jobs/jobsdb calls it for all background jobs.
func OwnWork(ctx context.Context) context.Context { return WithVisible(ctx, Visible{All: true}) }

// VisibleIn returns what the context's reader may see: nothing in a context without WithVisible or OwnWork.
func VisibleIn(ctx context.Context) Visible {
	visible, _ := ctx.Value(visibleKey{}).(Visible)
	return visible
}
