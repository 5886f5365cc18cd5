package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// View is what someone narrowed a list to, under a name of their own, in a version that kept
// views. An export of everything has it.
type View struct {
	ID      uuid.UUID
	User    uuid.UUID // whose it is
	List    string    // "sessions" or "requests"
	Name    string
	Query   string // the filters as an address has them
	SavedAt time.Time
}

// Views returns the views that an earlier version has kept.
type Views interface {
	// EveryView returns the views of all people whose ids follow one, in order.
	EveryView(ctx context.Context, workspace WorkspaceID, after uuid.UUID, limit int) ([]View, error)
}
