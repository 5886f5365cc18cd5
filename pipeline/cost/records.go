package cost

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Records reads what compactions of recorded sessions cost and brought.
type Records interface {
	// Decisions returns the epochs of a session, oldest first, with what came of them.
	Decisions(ctx context.Context, workspace tenants.WorkspaceID, session uuid.UUID) ([]Decision, error)

	// Notices returns what needs attention among the sessions that were active since
	// a moment before now; lanes with at least so many epochs are pointed out.
	Notices(ctx context.Context, workspace tenants.WorkspaceID, since, now time.Time, epochs int) ([]Notice, error)
}
