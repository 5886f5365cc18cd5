package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// View is a saved filter of a list, with its owner's name for it, from a version that had views. An export of
// all data includes it.
type View struct {
	ID      uuid.UUID
	User    uuid.UUID // the owner
	List    string    // "sessions" or "requests"
	Name    string
	Query   string // the filters as a URL's query
	SavedAt time.Time
}

// Views returns saved views from an earlier version.
type Views interface {
	// EveryView returns the views of all people with ids after one, in order.
	EveryView(ctx context.Context, workspace WorkspaceID, after uuid.UUID, limit int) ([]View, error)
}
