package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// MaxStars bounds the stars of one person in a workspace.
const MaxStars = 1000

// Star is a session that someone has marked. Others in the workspace do not see it, except in an export of
// all data.
type Star struct {
	User    uuid.UUID
	Session uuid.UUID
	At      time.Time
}

// Stars stores starred sessions.
type Stars interface {
	// Starred returns the sessions that a person has starred, the newest star first.
	Starred(ctx context.Context, workspace WorkspaceID, user uuid.UUID) ([]uuid.UUID, error)

	// Star returns ErrNotFound for an unknown session, and Invalid after too many stars. An existing star
	// stays unchanged.
	Star(ctx context.Context, workspace WorkspaceID, user, session uuid.UUID) error

	// Unstar removes a star, if it exists.
	Unstar(ctx context.Context, workspace WorkspaceID, user, session uuid.UUID) error

	// EveryStar returns up to limit stars of all people after one, in order; the zero Star starts at the
	// first.
	EveryStar(ctx context.Context, workspace WorkspaceID, after Star, limit int) ([]Star, error)
}
