package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// MaxStars is how many sessions of a workspace one person may star.
const MaxStars = 1000

// Star is a session that someone finds worth coming back to. No one else in the
// workspace sees it, except in an export of everything.
type Star struct {
	User    uuid.UUID
	Session uuid.UUID
	At      time.Time
}

// Stars keeps which sessions people have starred.
type Stars interface {
	// Starred returns the sessions that a person has starred, the newest star first.
	Starred(ctx context.Context, workspace WorkspaceID, user uuid.UUID) ([]uuid.UUID, error)

	// Star returns ErrNotFound for a session that the workspace does not have, and
	// Invalid for one star too many. A star that is there stays as it is.
	Star(ctx context.Context, workspace WorkspaceID, user, session uuid.UUID) error

	// Unstar takes a star away, if there is one.
	Unstar(ctx context.Context, workspace WorkspaceID, user, session uuid.UUID) error

	// EveryStar returns up to limit stars of all people that follow one, in order; for
	// the zero Star the first ones.
	EveryStar(ctx context.Context, workspace WorkspaceID, after Star, limit int) ([]Star, error)
}
